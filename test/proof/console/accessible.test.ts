import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createLedger, notDone } from 'onceonly'
import { createEngine, defineRun } from 'onceonly/run'
import { type SqliteStore, sqliteStore } from 'onceonly/sqlite'
import type { Page } from 'playwright-core'
import { buildPages } from '../../../console/build.ts'
import { type Axe, openAxe } from '../../support/axe.ts'
import { loaded, openBrowser, skip, type TestBrowser } from '../../support/browser.ts'
import { demoKey, type Opened, openedService, operatorToken } from '../../support/service/openapi/opened.ts'

const many = { records: 100_000, runs: 10_000, deadLetters: 1_000 }

let opened: Opened
let browser: TestBrowser
let store: SqliteStore
let axe: Axe
/** Why the checks cannot be run here. */
let missing: string | false = skip

before(async () => {
  if (skip !== false) return
  const found = await openAxe()
  if (typeof found === 'string') {
    missing = found
    return
  }
  axe = found
  await buildPages()
  opened = await openedService()
  browser = await openBrowser()
  store = sqliteStore(join(opened.data, 'onceonly.db'), { testClock: true })
  await makeEvents()
  await makeMany()
})
after(async () => {
  if (missing !== false) return
  await browser[Symbol.asyncDispose]()
  await store.stop()
  await opened[Symbol.asyncDispose]()
})

function send(path: string, method: string, key: string | null, body: unknown): Promise<Response> {
  const isText = typeof body === 'string'
  const headers = {
    authorization: `Bearer ${demoKey}`,
    'content-type': isText ? 'text/plain' : 'application/json',
    ...(key === null ? {} : { 'idempotency-key': key }),
  }
  return fetch(opened.service.url + path, { method, headers, body: isText ? body : JSON.stringify(body) })
}

/** One of everything that pages show. */
async function makeEvents(): Promise<void> {
  await send('/case-escalations', 'POST', 'seen-1', { caseId: 'CASE-100', targetQueue: 'BILLING', reason: 'seen' })
  for (const key of ['m-1', 'm-2'])
    await send('/api/messages', 'POST', key, { channel: 'local', message: 'Once', recipientPhone: '+491510002' })
  const started = await send('/api/imports', 'POST', 'i-1', { projectId: 'p', searchName: 's', files: ['a.ris'] })
  const { searchId } = (await started.json()) as { readonly searchId: string }
  await send(`/api/imports/${searchId}/files/a.ris`, 'PUT', null, 'TY  - JOUR\nTI  - On retries\nER  - \n')
  const ledger = createLedger({ store, background: false })
  const pay = ledger.operation({ name: 'pay', effect: 'external', onAbandoned: 'hold' })
  await pay.execute({ tenant: 'demo', caller: 'shop', key: 'lost' }, null, () => Promise.reject(new Error('vanished')))
  await ledger.stop()
  const deliver = defineRun('deliver', async (run) => {
    await run.step('pack', async () => 'packed')
    return await run.step('send', { retry: { attempts: 1 } }, () => {
      throw notDone(new Error('the door stays shut'))
    })
  })
  const charge = defineRun('charge', (run) =>
    run.step('pay', { semantics: 'once' }, () => {
      throw new Error('the line went dead')
    }),
  )
  const engine = await createEngine({ store, runs: [deliver, charge] })
  const failed = await engine.start(deliver, { runId: 'shop/deliver-1', input: null })
  await assert.rejects(failed.result({ waitMs: 120_000 }))
  await engine.start(charge, { runId: 'shop/charge-1', input: null })
  await engine.stop()
}

/** By SQL: as rows they are made in seconds. */
async function makeMany(): Promise<void> {
  const numbers = (most: number) => `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${most})`
  const names = await columnsOf('onceonly_records')
  const own: Readonly<Record<string, string>> = {
    seq: '(SELECT max(seq) FROM onceonly_records) + n',
    id: 'randomblob(16)',
    key: `'many-' || n`,
    claim_id: 'lower(hex(randomblob(16)))',
  }
  await store.sql.query(`INSERT INTO onceonly_records (${names.join(', ')}) ${numbers(many.records)}
    SELECT ${names.map((name) => own[name] ?? `r.${name}`).join(', ')} FROM n, onceonly_records AS r WHERE r.key = 'seen-1'`)
  await store.sql.query(
    `INSERT INTO onceonly_ids (id, seq) SELECT id, seq FROM onceonly_records WHERE key LIKE 'many-%'`,
  )
  const runNames = (await columnsOf('onceonly_runs')).filter((name) => name !== 'id')
  await store.sql.query(`INSERT INTO onceonly_runs (id, ${runNames.join(', ')}) ${numbers(many.runs)}
    SELECT 'shop/many-' || n, ${runNames.join(', ')} FROM n, onceonly_runs WHERE id = 'shop/deliver-1'`)
  await store.sql.query(`INSERT INTO onceonly_outbox_dead (position, partition, number, added_at, bytes, line, id, topic,
      key, headers, body, parked_at, attempts, reason) ${numbers(many.deadLetters)}
    SELECT n, 0, NULL, 1, 2, 'line-' || n, 'dead-' || n, 'Many', NULL, '{}', '{}', 1, 3, 'refused' FROM n`)
}

async function columnsOf(table: string): Promise<readonly string[]> {
  const rows = await store.sql.query<{ name: string }>(`SELECT name FROM pragma_table_info('${table}')`)
  return rows.map(({ name }) => name)
}

const looks = [
  { name: 'light', colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  { name: 'dark', colorScheme: 'dark', viewport: { width: 1280, height: 800 } },
  { name: 'phone', colorScheme: 'dark', viewport: { width: 360, height: 740 } },
] as const

/** Every page, and what stands on it once it is there. */
const places = [
  ['/console', 'Overview'],
  ['/console?range=24h', 'Overview'],
  ['/console/records', 'Records'],
  ['/console/records?view=unknowns', /Unknown outcomes/],
  ['/console/guard', 'Guard'],
  ['/console/events', 'Events'],
  ['/console/sagas', 'Sagas'],
  ['/console/sagas/SearchImportJob', 'SearchImportJob'],
  ['/console/runs', 'Runs'],
  ['/console/runs?state=failed&since=1d', 'Runs'],
  ['/console/runs/shop%2Fdeliver-1', /deliver-1/],
  ['/console/runs/shop%2Fcharge-1', /charge-1/],
  ['/console/streams', 'Streams'],
  ['/console/checklist', 'Checklist'],
  ['/console/audit', 'Audit'],
  ['/console/find?id=seen-1', 'Find'],
  ['/chat?room=axe', /Chat/],
  ['/', /Retries/],
] as const

/** Signs in, and gives what axe finds on the way. */
async function signIn(page: Page): Promise<readonly string[]> {
  await page.goto(`${opened.service.url}/console`)
  await page.getByLabel('Token').waitFor()
  const found = await axe.findings(page, 'sign-in')
  await page.getByLabel('Token').fill(operatorToken)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  return found
}

async function look(page: Page, address: string, title: string | RegExp): Promise<readonly string[]> {
  await page.goto(opened.service.url + address)
  await page.getByRole('heading', { name: title, level: 1 }).waitFor()
  await loaded(page)
  const overflow = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
  const wide = overflow === 0 ? [] : [`${address}: ${String(overflow)} px too wide`]
  return [...wide, ...(await axe.findings(page, address))]
}

for (const { name, ...options } of looks) {
  test(`no finding of axe on any page, ${name}, with ${many.records} records and ${many.runs} runs`, {
    skip,
  }, async (t) => {
    if (missing !== false) return t.skip(missing)
    const { page, assertClean } = await browser.open(options)
    const found = [...(await signIn(page))]
    for (const [address, title] of places) found.push(...(await look(page, address, title)))
    assert.deepEqual(found, [])
    assertClean()
  })
}

test('no finding of axe in a record, in dialogs and on the home page with its answers', { skip }, async (t) => {
  if (missing !== false) return t.skip(missing)
  const { page } = await browser.open()
  const found = [...(await signIn(page))]
  await page.goto(`${opened.service.url}/console/records?key=lost`)
  await page.getByRole('cell', { name: 'lost' }).click()
  await page.getByRole('heading', { name: 'Ten questions' }).waitFor()
  found.push(...(await axe.findings(page, 'a record')))
  await page.getByRole('button', { name: 'Resolve' }).click()
  const dialog = page.getByRole('dialog')
  assert.equal(await dialog.getByRole('radio', { checked: true }).count(), 0, 'nothing is chosen beforehand')
  assert.equal(await dialog.getByRole('button', { name: 'Resolve' }).isDisabled(), true)
  found.push(...(await axe.findings(page, 'the dialog of a record')))
  // What has the focus when a dialog opens is the way back.
  await page.keyboard.press('Enter')
  await dialog.waitFor({ state: 'detached' })

  await page.goto(`${opened.service.url}/console/runs?definition=deliver`)
  await page.getByRole('button', { name: 'Resume several' }).click()
  await dialog.getByText('Preview: 500 runs, the newest').waitFor()
  found.push(...(await axe.findings(page, 'the dialog of many runs')))
  await dialog.getByRole('button', { name: 'Back' }).click()

  await page.goto(opened.service.url)
  await page.getByRole('button', { name: 'Send twice' }).click()
  await page.getByText('Three requests, one message').waitFor()
  found.push(...(await axe.findings(page, 'the home page with answers')))
  assert.deepEqual(found, [])
})
