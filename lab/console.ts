import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { sqliteStore } from 'onceonly/sqlite'
import { createStreamClient, createWebSocketTransport } from 'onceonly/stream'
import type { WatchedPage } from '../test/support/browser.ts'
import { makeEvents, makeMany } from '../test/support/console/many.ts'
import { startServers } from '../tools/servers/index.ts'

/**
 * `npm run lab -- console`: all five systems at work in a real server, while a real browser opens every page of the console:
 * light, dark, and as wide as a phone. It reports how long each page took until it showed something, and its longest task,
 * keeps a picture of each, and exits with 1 when a page failed, was empty or was too wide.
 */
const { values } = parseArgs({
  options: {
    /** How long the systems are driven before the first page is looked at. */
    seconds: { type: 'string', default: '30' },
    /** Where the pictures go. */
    into: { type: 'string', default: 'data/console' },
    /** With 100 000 records, 10 000 runs and 1 000 dead letters in the store. */
    many: { type: 'boolean', default: false },
  },
})

type Page = WatchedPage['page']

const demoKey = 'demo-key-of-tests'
const operatorToken = 'operator-token-of-tests'
/** A person waits for a page about as long before the next thought. */
const SHOWN_MS_MOST = 3_000
const LOADED_MS_MOST = 15_000
const PAUSE_MS = 40

const titles = [
  'Overview',
  'Records',
  'Guard',
  'Events',
  'Sagas',
  'Runs',
  'Campaigns',
  'Streams',
  'Checklist',
  'Data',
  'Audit',
] as const
/** The first row of a list leads to one thing, and what happened to it. */
const details = [
  ['Records', 'record'],
  ['Sagas', 'saga'],
  ['Runs', 'run'],
  ['Campaigns', 'campaign'],
  ['Streams', 'room'],
] as const

const servers = await startServers(['browser'])
Object.assign(process.env, servers.env)
// Loaded only now: they look for the browser as soon as they are.
const [{ startedService }, { buildPages }, { loaded, openBrowser }] = await Promise.all([
  import('../test/support/service/service.ts'),
  import('../console/build.ts'),
  import('../test/support/browser.ts'),
])
await buildPages()
await mkdir(values.into, { recursive: true })

try {
  await using service = await startedService()
  await using browser = await openBrowser()
  if (values.many) {
    await using store = sqliteStore(service.file)
    const filled = { url: service.url, store }
    await makeEvents(filled)
    await makeMany(filled)
  }
  await using driven = drive(service.url)
  for (let second = 0; second < Number(values.seconds); second += 5) {
    await sleep(5_000)
    console.log(`${second + 5} s: ${driven.summary()}`)
  }
  let odd = 0
  const looks = [
    { name: 'light', colorScheme: 'light', viewport: { width: 1280, height: 800 } },
    { name: 'dark', colorScheme: 'dark', viewport: { width: 1280, height: 800 } },
    { name: 'phone', colorScheme: 'light', viewport: { width: 390, height: 844 } },
  ] as const
  for (const { name, ...options } of looks) {
    const { page, assertClean } = await browser.open(options)
    await signIn(page, service.url)
    for (const title of titles) odd += (await look(page, title, name)) ? 0 : 1
    for (const [title, kind] of details) odd += (await lookInto(page, title, kind, name)) ? 0 : 1
    assertClean()
  }
  console.log(`${driven.summary()}; ${odd === 0 ? 'every page is right' : `${odd} pages are not right`}`)
  process.exitCode = odd === 0 ? 0 : 1
} finally {
  await servers.stop()
}

/** Drives the systems until it is disposed of; what goes wrong then is only that they end. */
function drive(url: string): AsyncDisposable & { summary(): string } {
  const stopping = new AbortController()
  const done = { requests: 0, failed: 0 }
  const driving = allSystems(url, done, stopping.signal)
  driving.catch((error: unknown) => {
    if (!stopping.signal.aborted) console.error(error)
  })
  return {
    summary: () => `${done.requests} requests, ${done.failed} failed`,
    async [Symbol.asyncDispose]() {
      stopping.abort()
      await driving.catch(() => undefined)
    },
  }
}

/** All five systems at once, each in a loop of its own, with retries of what was asked before. */
async function allSystems(url: string, done: { requests: number; failed: number }, signal: AbortSignal): Promise<void> {
  const ask = async (method: string, path: string, key: string | null, body: unknown) => {
    const headers = {
      authorization: `Bearer ${demoKey}`,
      'content-type': typeof body === 'string' ? 'text/plain' : 'application/json',
      ...(key === null ? {} : { 'idempotency-key': key }),
    }
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const response = await fetch(url + path, { method, headers, body: text })
    done.requests += 1
    if (response.status >= 500) done.failed += 1
    return (await response.json().catch(() => ({}))) as Readonly<Record<string, string>>
  }
  const repeat = async (work: (turn: number) => Promise<void>) => {
    for (let turn = 0; !signal.aborted; turn++) {
      await work(turn)
      await sleep(PAUSE_MS)
    }
  }
  const lead = await ask('POST', '/api/messages', 'lead', {
    channel: 'local',
    message: 'A lead',
    recipientEmail: 'lab@example.com',
  })
  const sequence = await ask('POST', '/api/sequences', 'sequence', {
    name: 'Lab',
    steps: [
      { id: 'hello', type: 'email', subject: 'Hello', template: 'Good to have you, {{lead.email}}.' },
      { id: 'pause', type: 'wait', ms: 60_000 },
    ],
  })
  const campaign = { campaignId: 'lab', sequenceId: sequence['id'], leadIds: [lead['leadId']] }
  await ask('POST', '/api/campaigns', 'campaign', campaign)
  const clients = await Promise.all(
    ['tokyo', 'frankfurt'].map((region) =>
      createStreamClient({
        room: 'lab',
        regions: [region],
        transport: createWebSocketTransport({
          url: (each) => `${url.replace('http', 'ws')}/chat/socket?region=${each}`,
          token: () => demoKey,
        }),
        mode: 'at-least-once',
        from: 'start',
        receiver: { message: () => {} },
      }),
    ),
  )
  await Promise.all([
    // Every third one is a retry, and every tenth uses a key again for something else.
    repeat(async (turn) => {
      const key = `escalation-${turn - (turn % 3 === 0 ? 1 : 0)}`
      const reason = turn % 10 === 0 ? 'another reason' : 'late'
      await ask('POST', '/case-escalations', key, { caseId: 'CASE-100', targetQueue: 'LEGAL_REVIEW', reason })
    }),
    repeat(async (turn) => {
      const message = `Number ${turn - (turn % 4 === 0 ? 1 : 0)}`
      await ask('POST', '/api/messages', null, { channel: 'local', message, recipientPhone: '+491510002' })
    }),
    repeat(async (turn) => {
      const files = ['a.ris', 'b.ris']
      const body = { projectId: 'lab', searchName: `Search ${turn}`, files }
      const { searchId } = await ask('POST', '/api/imports', `import-${turn}`, body)
      for (const name of files) {
        await ask('PUT', `/api/imports/${searchId}/files/${name}`, null, 'TY  - JOUR\nTI  - On retries\nER  - \n')
      }
      await sleep(500)
    }),
    repeat(async (turn) => {
      const body = { leadId: lead['leadId'], runId: `lab-${turn}` }
      await ask('POST', `/api/sequences/${sequence['id']}/runs`, `run-${turn}`, body)
      await sleep(300)
    }),
    repeat(async (turn) => {
      await clients[turn % clients.length]?.send({ by: 'Ada', text: `Turn ${turn}` })
      await sleep(200)
    }),
  ])
  await Promise.all(clients.map((client) => client.stop()))
}

async function signIn(page: Page, url: string): Promise<void> {
  await page.goto(`${url}/console`)
  await page.evaluate(`window.tasks = []; new PerformanceObserver((list) =>
    tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: 'longtask' })`)
  await page.getByLabel('Token').fill(operatorToken)
  await page.getByLabel('Your name').fill('lab')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
}

async function look(page: Page, title: (typeof titles)[number], how: string): Promise<boolean> {
  await page.evaluate('tasks.length = 0')
  const begin = performance.now()
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: title }).click()
  await page.getByRole('heading', { name: title, level: 1 }).waitFor()
  return await judged(page, title.toLowerCase(), how, begin)
}

async function lookInto(page: Page, title: (typeof titles)[number], kind: string, how: string): Promise<boolean> {
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: title }).click()
  await page.getByRole('heading', { name: title, level: 1 }).waitFor()
  const first = page
    .getByRole('main')
    .getByRole(title === 'Sagas' ? 'link' : 'cell')
    .first()
  await first.waitFor()
  await page.evaluate('tasks.length = 0')
  const begin = performance.now()
  await first.click()
  await page.getByRole('heading', { name: title, level: 1 }).waitFor({ state: 'detached' })
  return await judged(page, `one-${kind}`, how, begin)
}

async function judged(page: Page, name: string, how: string, begin: number): Promise<boolean> {
  await loaded(page, LOADED_MS_MOST)
  const shownMs = Math.round(performance.now() - begin)
  const failed = await page.getByRole('alert').count()
  // No operator acts in the lab, and nothing dies there: no alert, no audit entry and no dead letter is expected.
  const mayBeEmpty = ['overview', 'audit', 'events'].includes(name)
  const states = page.getByRole('main').locator('.state:not(.failed)')
  const empty = mayBeEmpty ? 0 : await states.count()
  const wide = Number(
    await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
  )
  const longest = Math.round(Math.max(0, ...((await page.evaluate('tasks')) as number[])))
  await page.screenshot({ path: join(values.into, `${name}-${how}.png`) })
  const faults = [
    ...(failed > 0 ? ['it failed'] : []),
    ...(empty > 0 ? ['something is empty'] : []),
    ...(wide > 0 ? [`${wide} px too wide`] : []),
    ...(shownMs > SHOWN_MS_MOST ? ['slow'] : []),
  ]
  const verdict = faults.length === 0 ? 'good' : faults.join(', ')
  console.log(`${how.padEnd(5)} ${name.padEnd(12)} ${shownMs} ms, longest task ${longest} ms: ${verdict}`)
  return faults.length === 0
}
