import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createLedger, final, type Ledger, notDone } from 'onceonly'
import { createInbox } from 'onceonly/inbox'
import { createEngine, defineRun } from 'onceonly/run'
import { type SqliteStore, type SqliteTx, sqliteStore } from 'onceonly/sqlite'
import { createStreamClient, createWebSocketTransport } from 'onceonly/stream'
import type { Page } from 'playwright-core'
import { buildPages } from '../../../console/build.ts'
import { until } from '../../../src/testing/until.ts'
import { loaded, openBrowser, skip, type TestBrowser, type WatchedPage } from '../../support/browser.ts'
import { quietLedger } from '../../support/quiet-ledger.ts'
import {
  demoKey,
  type Opened,
  openedService,
  operatorToken,
  viewerToken,
} from '../../support/service/openapi/opened.ts'

/** As many as an operator may have to look through. */
const recordsMany = 10_000
/** So that a slow machine does not keep a claim waiting for ten thousand others. */
const recordsAtOnce = 500

let opened: Opened
let browser: TestBrowser
/** Another process on the same store, with code of its own. */
let store: SqliteStore
let ledger: Ledger<SqliteTx>

before(async () => {
  if (skip !== false) return
  await buildPages()
  opened = await openedService()
  browser = await openBrowser()
  store = sqliteStore(join(opened.data, 'onceonly.db'), { testClock: true })
  ledger = createLedger({ store, background: false })
})
after(async () => {
  if (skip !== false) return
  await browser[Symbol.asyncDispose]()
  await ledger.stop()
  await store.stop()
  await opened[Symbol.asyncDispose]()
})

async function signIn(token: string, name = ''): Promise<WatchedPage> {
  const watched = await browser.open({ colorScheme: 'dark' })
  const { page } = watched
  await page.goto(`${opened.service.url}/console`)
  await page.getByLabel('Token').fill(token)
  await page.getByLabel('Your name').fill(name)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  return watched
}

/** By the page's own navigation, so that nothing is loaded anew. */
async function go(page: Page, title: string): Promise<void> {
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: title }).click()
  await page.getByRole('heading', { name: title, level: 1 }).waitFor()
}

const evil = '<img src=x onerror="window.stolen = true"><script>window.stolen = true</script>'

function post(path: string, key: string, body: unknown): Promise<Response> {
  const headers = { authorization: `Bearer ${demoKey}`, 'content-type': 'application/json', 'idempotency-key': key }
  return fetch(opened.service.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
}

test('an unknown outcome is found from the overview and resolved; what was stored stays text; a viewer only looks', {
  skip,
}, async () => {
  await post('/case-escalations', 'stored-1', { caseId: 'CASE-100', targetQueue: 'LEGAL_REVIEW', reason: evil })
  const pay = ledger.operation({ name: 'pay', effect: 'external', onAbandoned: 'hold' })
  for (const key of ['order-8', 'order-7']) {
    await pay.execute({ tenant: 'demo', caller: 'shop', key }, null, () => Promise.reject(new Error('vanished')))
  }

  const viewer = await signIn(viewerToken)
  await viewer.page.goto(`${opened.service.url}/console/records?key=stored-1`)
  await viewer.page.getByRole('cell', { name: 'stored-1' }).click()
  await viewer.page.getByText('Visible to operators only.').waitFor()
  assert.equal(await viewer.page.getByRole('button', { name: 'Forget' }).count(), 0)
  viewer.assertClean()

  const { page, assertClean } = await signIn(operatorToken, 'Mira')
  await page.getByRole('link', { name: /Unknown outcomes/ }).click()
  await page.getByRole('cell', { name: 'order-7' }).click()
  await page.getByRole('button', { name: 'Resolve' }).click()
  await page.getByText('It happened').click()
  await page.getByLabel('Its result').fill('{"paid":true}')
  await page.getByRole('dialog').getByRole('button', { name: 'Resolve' }).click()
  await page.getByRole('heading', { name: /succeeded/ }).waitFor()

  await page.goto(`${opened.service.url}/console/records?key=order-8`)
  await page.getByRole('cell', { name: 'order-8' }).click()
  await page.getByRole('button', { name: 'Resolve' }).click()
  await page.getByText('It did not happen').click()
  assert.equal(await page.getByRole('dialog').getByRole('textbox').count(), 0, 'there is nothing to say about it')
  await page.getByText('It failed', { exact: true }).click()
  await page.getByLabel('Why it failed').fill('The bank said no')
  await page.getByRole('dialog').getByRole('button', { name: 'Resolve' }).click()
  await page.getByRole('heading', { name: /failed/ }).waitFor()
  await page.getByText('The bank said no').first().waitFor()
  const retried = await pay.execute({ tenant: 'demo', caller: 'shop', key: 'order-8' }, null, async () => 'never')
  assert.match(JSON.stringify(retried), /The bank said no/, 'and so is every retry')

  await go(page, 'Audit')
  await page.getByRole('cell', { name: /^Mira/ }).first().waitFor()
  await page.goto(`${opened.service.url}/console/records?key=stored-1`)
  await page.getByRole('cell', { name: 'stored-1' }).click()
  await page.locator('pre.stored', { hasText: '<img src=x' }).waitFor()
  assert.equal(await page.evaluate('window.stolen'), undefined)
  assertClean()
})

test('a dead letter is redriven after a preview', { skip }, async () => {
  await using inbox = createInbox({ ledger, consumer: 'escalations.notices', background: false })
  const body = { tenant: 'demo', targetQueue: 'LEGAL_REVIEW', caseId: 'CASE-1', escalationId: 'ESC-DEAD' }
  const message = { id: 'dead-1', topic: 'CaseEscalated', key: null, sequence: null, headers: {}, deliveries: 1 }
  await inbox.receive({ ...message, body: JSON.stringify(body) }, () =>
    Promise.reject(final(new Error('Cannot be handled'))),
  )

  const { page, assertClean } = await signIn(operatorToken, 'Mira')
  await go(page, 'Events')
  await page.getByRole('link', { name: 'escalations.notices' }).click()
  await page.getByText('Cannot be handled').waitFor()
  await page.getByRole('button', { name: 'Choose all' }).click()
  await page.getByRole('button', { name: 'Redrive 1' }).click()
  await page.getByRole('dialog').getByText('Preview: 1 dead letter').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Redrive' }).click()
  await page.getByText('No dead letters').waitFor()
  assertClean()
})

test('more dead letters than fit on a page are loaded while the reader scrolls', { skip }, async () => {
  await store.sql.query(
    `INSERT INTO onceonly_outbox_dead (position, partition, number, added_at, bytes, line, id, topic, key, headers,
      body, parked_at, attempts, reason)
      WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 450)
      SELECT n, 0, NULL, 1, 2, 'line-' || n, 'many-' || n, 'Many', NULL, '{}', '{}', 1, 3, 'refused' FROM n`,
  )
  const { page, assertClean } = await signIn(operatorToken, 'Mira')
  await go(page, 'Events')
  const letters = page.locator('.letter')
  for (const count of [200, 400]) {
    await page.getByText(`${count} are shown`).waitFor()
    assert.equal(await letters.count(), count)
    await page.getByRole('button', { name: 'More dead letters' }).click()
  }
  await page.getByRole('button', { name: 'More dead letters' }).waitFor({ state: 'detached' })
  assert.equal(await letters.count(), 450)
  await page.getByRole('button', { name: 'Choose all' }).click()
  await page.getByRole('button', { name: 'Purge' }).click()
  await page.getByRole('dialog').getByText('Preview: 450 dead letters').waitFor()
  assertClean()
  // Each dead letter is a transaction of its own: hundreds of them are for a quiet disk, not for a test of pages.
  await store.sql.query(`DELETE FROM onceonly_outbox_dead WHERE topic = 'Many'`)
})

test('a run: an unknown step is resolved, a replay shows what an edit changes, a sleeping one is cancelled', {
  skip,
}, async () => {
  const charge = defineRun('charge', (run) =>
    run.step('pay', { semantics: 'once' }, () => {
      throw new Error('the line went dead')
    }),
  )
  let isMended = false
  const deliver = defineRun('deliver', (run) =>
    run.step('send', { retry: { attempts: 1 } }, () => {
      if (!isMended) throw notDone(new Error('the door stays shut'))
      return 'delivered'
    }),
  )
  const engine = await createEngine({ ledger: quietLedger(store), runs: [charge, deliver] })
  const delivered = await engine.start(deliver, { runId: 'shop/deliver-1', input: null })
  await assert.rejects(delivered.result({ waitMs: 120_000 }), /the door stays shut/)
  const paid = await engine.start(charge, { runId: 'shop/charge-1', input: { amount: 7 } })
  const sequence = (path: string) => [
    { id: 'reach', type: 'branch', when: { path, op: 'exists' }, else: null },
    { id: 'pause', type: 'wait', ms: 3_600_000 },
  ]
  const stored = async (path: string) =>
    (await (await post('/api/sequences', `edit-${path}`, { name: 'Edit', steps: sequence(path) })).json()) as {
      id: string
    }
  const { id } = await stored('lead.email')
  const lead = { channel: 'local', message: 'A lead', recipientEmail: 'run@example.com' }
  const { leadId } = (await (await post('/api/messages', 'lead', lead)).json()) as { leadId: string }
  assert.equal((await post(`/api/sequences/${id}/runs`, 'run', { leadId, runId: 'edited' })).status, 201)
  await stored('lead.phone')

  const { page, assertClean } = await signIn(operatorToken, 'Mira')
  await page.getByRole('link', { name: /unknown outcomes/i }).click()
  await page.getByRole('cell', { name: /shop\/charge-1/ }).click()
  await page.getByRole('button', { name: 'Resolve this step' }).click()
  await page.getByText('It happened').click()
  await page.getByLabel('Its result, as JSON').fill('{"paid":')
  await page.getByRole('dialog').getByRole('button', { name: 'Resolve' }).click()
  await page.getByRole('dialog').getByRole('alert').waitFor()
  await page.getByLabel('Its result, as JSON').fill('{"paid":7}')
  await page.getByRole('dialog').getByRole('button', { name: 'Resolve' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  assert.deepEqual(await paid.result({ waitMs: 120_000 }), { paid: 7 })

  isMended = true
  await page.goto(`${opened.service.url}/console/runs?state=failed`)
  await page.getByRole('cell', { name: 'shop/deliver-1' }).click()
  await page.getByText('the door stays shut').first().waitFor()
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  assert.equal(await delivered.result({ waitMs: 120_000 }), 'delivered')
  await engine.stop()

  await page.goto(`${opened.service.url}/console/runs?scope=shop`)
  await page.getByRole('cell', { name: 'shop/charge-1' }).waitFor()
  assert.equal(await page.getByRole('cell', { name: /edited/ }).count(), 0, 'the filter leaves the others out')
  await page.goto(`${opened.service.url}/console/runs?state=sleeping`)
  await page.getByRole('cell', { name: /edited/ }).click()
  await page.getByRole('button', { name: 'Replay with today' }).click()
  await page.getByText('diverged').waitFor()
  const difference = page.locator('tr.difference').first()
  const [then, today] = [difference.locator('pre.then'), difference.locator('pre.today')]
  assert.notEqual(await then.textContent(), await today.textContent())
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: 'Cancel the run' }).click()
  await page.getByRole('heading', { name: /cancelled/ }).waitFor()
  await go(page, 'Audit')
  for (const what of ['run.resolve', 'run.resume', 'run.cancel'])
    await page.getByRole('cell', { name: what }).first().waitFor()
  assertClean()
})

test('a guarded text is released, a dead letter of the outbox is redriven, a wrong token is refused', {
  skip,
}, async () => {
  const stranger = await browser.open()
  await stranger.page.goto(`${opened.service.url}/console`)
  await stranger.page.getByLabel('Token').fill('a-guess')
  await stranger.page.keyboard.press('Enter')
  await stranger.page.getByText('No such token.').waitFor()

  const send = async (key: string) => {
    const answer = await post('/api/messages', key, { channel: 'local', message: 'Once', recipientPhone: '+491510002' })
    return ((await answer.json()) as { message: { _id: string } }).message._id
  }
  const original = await send('guard-1')
  assert.equal(await send('guard-2'), original)
  await store.sql.query(
    `INSERT INTO onceonly_outbox_dead (position, partition, number, added_at, bytes, line, id, topic, key, headers,
      body, parked_at, attempts, reason) VALUES (1, 0, NULL, 1, 2, 'lost', 'lost-1', 'Lost', NULL, '{}', '{}', 1, 3, ?)`,
    ['The broker said no'],
  )
  const { page, assertClean } = await signIn(operatorToken, 'Mira')
  await go(page, 'Guard')
  await page.getByRole('row', { name: original }).getByRole('link').click()
  await page.getByRole('button', { name: 'Forget' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Forget' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  assert.notEqual(await send('guard-3'), original)

  await go(page, 'Events')
  await page.getByText('The broker said no').waitFor()
  await page.getByRole('button', { name: 'Choose all' }).click()
  await page.getByRole('button', { name: 'Redrive 1' }).click()
  await page.getByRole('dialog').getByText('Preview: 1 dead letter').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Redrive' }).click()
  await page.getByText('No dead letters').waitFor()
  await go(page, 'Audit')
  for (const what of ['forget', 'outbox.redrive']) await page.getByRole('cell', { name: what }).first().waitFor()
  assertClean()
})

test('a room of the chat is seen from outside: where its regions stand, and what caused what', { skip }, async () => {
  const url = (region: string) => `${opened.service.url.replace('http', 'ws')}/chat/socket?region=${region}`
  const transport = createWebSocketTransport({ url, token: () => demoKey })
  const client = await createStreamClient({
    room: 'seen',
    regions: ['tokyo'],
    transport,
    mode: 'at-least-once',
    from: 'start',
    receiver: { message: () => {} },
  })
  await client.send({ by: 'Ada', text: evil })
  const { page, assertClean } = await signIn(operatorToken)
  await go(page, 'Streams')
  await page.getByRole('cell', { name: /\.seen$/ }).click()
  await page.getByRole('row', { name: /^tokyo/ }).waitFor()
  await page.getByLabel('As seen in').selectOption('tokyo')
  await page.getByRole('img', { name: '1 events on 1 hosts' }).waitFor()
  assert.ok((await page.locator('circle.event title').textContent())?.startsWith(evil))
  assert.equal(await page.evaluate('window.stolen'), undefined)
  assertClean()

  const viewer = await signIn(viewerToken)
  await viewer.page.goto(`${page.url()}`)
  await viewer.page.getByText('Operators also see what was said.').waitFor()
  assert.ok(!(await viewer.page.content()).includes('stolen'))
  viewer.assertClean()
  await client.stop()
})

test('every page works on a phone, in the dark and by keyboard; a list that fails says so and can be had again', {
  skip,
}, async () => {
  const { page, assertClean } = await signIn(operatorToken)
  // The browser may report the scheme after the page has begun.
  await page.locator('html[data-theme="dark"]').waitFor()
  await page.getByRole('link', { name: 'Overview' }).focus()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Records' }).waitFor()
  await page.getByRole('table').getByRole('link').first().focus()
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Ten questions' }).waitFor()

  await page.setViewportSize({ width: 360, height: 640 })
  // As the menu has them: a page that is added to it is looked at.
  const titles = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allInnerTexts()
  assert.ok(titles.length >= 11, titles.join(', '))
  for (const title of titles.map((text) => text.replace(/\s*\d+$/, ''))) {
    await go(page, title)
    await loaded(page)
    assert.equal(await page.getByRole('alert').count(), 0, title)
    const overflow = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
    assert.equal(overflow, 0, title)
  }
  assertClean()

  await page.route('**/api/console/guard*', (route) => route.abort())
  await go(page, 'Guard')
  await page.getByText('The server does not answer.').waitFor()
  await page.unroute('**/api/console/guard*')
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('alert').waitFor({ state: 'detached' })
})

test('while the store is away the overview does not say that all is well, and every page is still reached', {
  skip,
}, async () => {
  const { page } = await signIn(operatorToken)
  const rates = { at: Date.now(), perSecond: {}, latencyMs: { request: null, claim: null, effect: null } }
  const away = `retry: 100\n\nevent: rates\ndata: ${JSON.stringify({ ...rates, standing: null })}\n\n`
  await page.route('**/api/console/live', (route) => route.fulfill({ contentType: 'text/event-stream', body: away }))
  await page.reload()
  // Exact: a notice above the page uses these words too, in a sentence of its own.
  const unknown = page.getByText('Status unknown', { exact: true })
  await unknown.waitFor()
  assert.equal(await page.getByText('All clear', { exact: true }).count(), 0)
  await go(page, 'Records')
  await page.unroute('**/api/console/live')
  await go(page, 'Overview')
  await unknown.waitFor({ state: 'detached' })
})

test('ten thousand records are scrolled through, and only what is seen is drawn', { skip }, async () => {
  const fill = ledger.operation({ name: 'fill', effect: 'external' })
  for (let from = 0; from < recordsMany; from += recordsAtOnce) {
    const keys = Array.from({ length: recordsAtOnce }, (_, at) => `fill-${from + at}`)
    await Promise.all(keys.map((key) => fill.run({ tenant: 'demo', caller: 'many', key }, null, async () => null)))
  }

  const { page, assertClean } = await signIn(operatorToken)
  await go(page, 'Records')
  await page.getByLabel('Operation').fill('fill')
  await page.keyboard.press('Enter')
  const rows = page.getByRole('table')
  const shown = `document.querySelector('[role=table]')?.getAttribute('aria-rowcount')`
  const scrolled = `{ const box = document.querySelector('.rows'); if (box !== null) box.scrollTop = box.scrollHeight }`
  await until(
    'all records are listed',
    () => page.evaluate(`${scrolled} ${shown}`),
    (rows) => rows === String(recordsMany + 1),
  )
  await rows.getByText('fill-', { exact: false }).last().waitFor()
  assert.ok((await rows.getByRole('row').count()) < 100, 'only what is seen is drawn')
  assertClean()
})
