import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createEngine, defineQueue, defineRun, type Engine, schedule } from 'onceonly/run'
import { type SqliteStore, sqliteStore } from 'onceonly/sqlite'
import type { Page } from 'playwright-core'
import { buildPages } from '../../../console/build.ts'
import { until } from '../../../src/testing/until.ts'
import { openBrowser, skip, type TestBrowser, type WatchedPage } from '../../support/browser.ts'
import { quietLedger } from '../../support/quiet-ledger.ts'
import { type Opened, openedService, operatorToken, viewerToken } from '../../support/service/openapi/opened.ts'

const HOUR_MS = 3_600_000

const leaf = defineRun('leaf', (run, input: number) => run.step('double', () => input * 2))
const family = defineRun('family', async (run, input: { readonly n: number }) => {
  await run.setAttributes({ customer: 'c-1' })
  await run.emit('began', { by: 'Ada' })
  const doubled = await run.child(leaf, { id: 'leaf', input: input.n })
  return await run.step('add', () => doubled + input.n)
})
const nap = defineRun('nap', async (run) => {
  await run.step('lie-down', () => 'down')
  await run.sleep('rest', HOUR_MS)
})
const mail = defineQueue('mail')
const nightly = schedule('nightly', { run: leaf, input: () => 1, cron: '0 3 * * *', timezone: 'UTC' })

let opened: Opened
let browser: TestBrowser
/** Another process on the same store, with code of its own. */
let store: SqliteStore
let engine: Engine

before(async () => {
  if (skip !== false) return
  await buildPages()
  opened = await openedService()
  browser = await openBrowser()
  store = sqliteStore(join(opened.data, 'onceonly.db'), { testClock: true })
  engine = await createEngine({
    ledger: quietLedger(store),
    runs: [leaf, family, nap],
    queues: [mail],
    schedules: [nightly],
  })
})
after(async () => {
  if (skip !== false) return
  await browser[Symbol.asyncDispose]()
  await engine.stop()
  await store.stop()
  await opened[Symbol.asyncDispose]()
})

async function signIn(address: string, token = operatorToken): Promise<WatchedPage> {
  const watched = await browser.open()
  const { page } = watched
  await page.goto(`${opened.service.url}/console${address}`)
  await page.getByLabel('Token').fill(token)
  await page.keyboard.press('Enter')
  await page.getByRole('navigation', { name: 'Pages' }).waitFor()
  return watched
}

/** Presses the button of the open dialog, and waits until it has done what it says. */
async function confirm(page: Page, name: string): Promise<void> {
  await page.getByRole('dialog').getByRole('button', { name }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
}

test('the tree of a run, its queue, attributes and events are seen, and a fork continues from one of its steps', {
  skip,
}, async () => {
  const enqueued = await engine.enqueue(family, { queue: mail, key: 'k-1', runId: 'shop/family', input: { n: 5 } })
  assert.equal(await enqueued.result({ waitMs: 120_000 }), 15)
  const { page, assertClean } = await signIn('/runs/shop%2Ffamily')
  const facts = page.getByRole('region', { name: 'The run' })
  await facts.getByRole('link', { name: 'mail' }).waitFor()
  await facts.getByText('k-1').waitFor()
  const events = page.getByRole('region', { name: 'Events' })
  await events.getByText('began').click()
  await events.getByText('"by": "Ada"').waitFor()

  await page.getByRole('region', { name: 'Children' }).getByRole('link', { name: /leaf/ }).click()
  await page.getByText('leaf v1').first().waitFor()
  await page.getByRole('region', { name: 'The run' }).getByRole('link', { name: 'shop/family' }).click()
  await page.getByRole('region', { name: 'Attributes' }).getByRole('link', { name: 'c-1' }).click()
  await page.getByRole('cell', { name: 'shop/family' }).click()

  await page.getByRole('button', { name: 'Fork' }).click()
  const dialog = page.getByRole('dialog')
  assert.equal(await dialog.getByRole('button', { name: 'Start the new run' }).isDisabled(), true)
  await dialog.getByLabel('From the step').selectOption({ label: 'add' })
  await dialog.getByRole('listitem').filter({ hasText: 'leaf' }).getByText('copied').waitFor()
  await dialog.getByRole('listitem').filter({ hasText: 'add' }).getByText('done by the new run').waitFor()
  await dialog.getByLabel('Id of the new run').fill('shop/forked')
  await dialog.getByLabel('Another input').fill('{"n":7}')
  await confirm(page, 'Start the new run')
  await page.getByRole('region', { name: 'The run' }).getByRole('link', { name: 'shop/family' }).waitFor()
  assert.equal(await engine.handle('shop/forked').result({ waitMs: 120_000 }), 17, 'the child was not run again')
  assertClean()

  const viewer = await signIn('/runs/shop%2Ffamily', viewerToken)
  await viewer.page.getByRole('region', { name: 'Events' }).getByText('began').click()
  await viewer.page.getByRole('region', { name: 'Events' }).getByText('Visible to operators only.').waitFor()
  assert.equal(await viewer.page.getByRole('button', { name: 'Fork' }).count(), 0)
  viewer.assertClean()
})

test('a queue is paused and resumed, and a schedule triggered, paused and resumed', { skip }, async () => {
  const { page, assertClean } = await signIn('/runs?view=queues')
  await page.getByRole('button', { name: 'Pause mail' }).click()
  await confirm(page, 'Pause the queue')
  const queue = page.getByRole('row', { name: /^mail/ })
  await queue.getByText('paused').waitFor()
  const waiting = await engine.enqueue(leaf, { queue: mail, runId: 'shop/waits', input: 2 })
  await page.reload()
  await page.getByRole('link', { name: 'mail' }).click()
  await page
    .getByRole('row', { name: /shop\/waits/ })
    .getByText('queued')
    .waitFor()
  await page.getByRole('link', { name: 'Queues' }).click()
  await page.getByRole('button', { name: 'Resume mail' }).click()
  await confirm(page, 'Resume the queue')
  await queue.getByText('active').waitFor()
  assert.equal(await waiting.result({ waitMs: 120_000 }), 4)

  await page.goto(`${opened.service.url}/console/runs?view=schedules`)
  await page.getByRole('button', { name: 'Pause: nightly' }).click()
  await confirm(page, 'Pause the schedule')
  const row = page.getByRole('row', { name: /^nightly/ })
  await row.getByText('paused').waitFor()
  await page.getByRole('button', { name: 'Run now: nightly' }).click()
  await confirm(page, 'Start a run of the schedule')
  await until(
    'the schedule has started a run',
    async () => (await engine.list({ definition: 'leaf' })).runs,
    (runs) => runs.some(({ runId }) => runId.startsWith('schedule:nightly:')),
  )
  await page.goto(`${opened.service.url}/console/runs?definition=leaf`)
  await page.getByRole('cell', { name: /schedule:nightly:/ }).click()
  await page.getByText('leaf v1').first().waitFor()
  await page.goto(`${opened.service.url}/console/runs?view=schedules`)
  await page.getByRole('button', { name: 'Resume: nightly' }).click()
  await confirm(page, 'Resume the schedule')
  await row.getByText('active').waitFor()
  assertClean()
})

test('one run is cancelled and resumed; many are, with a bar that moves, and only those that the list shows', {
  skip,
}, async () => {
  const ids = Array.from({ length: 120 }, (_, at) => `many/nap-${at}`)
  for (const runId of [...ids, 'other/nap']) await engine.start(nap, { runId, input: null })
  const stateOf = async (runId: string) => (await engine.get(runId)).state
  const statesOf = async (state: 'sleeping' | 'cancelled') => (await engine.list({ scope: 'many', state })).runs.length
  await until(
    'all of them sleep',
    () => statesOf('sleeping'),
    (count) => count === ids.length,
  )
  const { page, assertClean } = await signIn('/runs/other%2Fnap')
  await page.getByRole('button', { name: 'Cancel' }).click()
  await confirm(page, 'Cancel the run')
  await page.getByRole('button', { name: 'Resume' }).click()
  await confirm(page, 'Resume the run')
  await page.getByRole('button', { name: 'Cancel' }).waitFor()
  assert.notEqual(await stateOf('other/nap'), 'cancelled')

  await page.goto(`${opened.service.url}/console/runs?scope=many`)
  const gate = Promise.withResolvers<void>()
  let asked = 0
  await page.route('**/api/console/actions', async (route) => {
    if (++asked === 2) await gate.promise
    await route.continue()
  })
  await page.getByRole('button', { name: 'Cancel several' }).click()
  await page.getByRole('dialog').getByText('Preview: 120 runs').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel 120' }).click()
  await page.getByRole('progressbar', { name: '50 of 120 runs' }).waitFor()
  assert.equal(await statesOf('cancelled'), 50)
  gate.resolve()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  assert.equal(await statesOf('cancelled'), ids.length)
  await page.unroute('**/api/console/actions')
  assert.notEqual(await stateOf('other/nap'), 'cancelled', 'the filter left it out')

  await page.getByRole('button', { name: 'Resume several' }).click()
  await page.getByRole('dialog').getByText('Preview: 120 runs').waitFor()
  await confirm(page, 'Resume 120')
  assert.equal(await statesOf('cancelled'), 0)
  assertClean()
})

test('runs are found by queue, parent, attribute and time, and the address keeps it', { skip }, async () => {
  const old = await engine.start(leaf, { runId: 'found/one', input: 1 })
  await old.result({ waitMs: 120_000 })
  const { page, assertClean } = await signIn('/runs')
  await page.getByText('More filters').click()
  const rows = page.getByRole('table').getByRole('rowgroup').getByRole('row')
  const shows = (what: string, expected: RegExp) =>
    until(
      what,
      async () => (await rows.allInnerTexts()).map((text) => text.replaceAll('\n', '')),
      (texts) => texts.length > 0 && texts.every((text) => expected.test(text)),
    )
  await page.getByLabel('Parent').fill('shop/family')
  await page.keyboard.press('Enter')
  await shows('the child is listed', /leaf/)
  assert.equal(await page.evaluate('location.search'), '?parent=shop%2Ffamily')
  await page.getByLabel('Parent').fill('')
  await page.getByLabel('Attribute').fill('customer=c-1')
  await page.keyboard.press('Enter')
  await shows('those of the customer are listed', /family|forked/)
  await page.getByLabel('Attribute').fill('')
  await page.getByLabel('Scope').fill('found')
  await page.keyboard.press('Enter')
  await shows('those of the scope are listed', /found/)
  await page.getByLabel('Began before').fill('2001-01-01T00:00')
  await page.getByText('No run matches these filters.').waitFor()
  await page.getByLabel('Began before').fill('')
  await page.getByLabel('Began from').fill('2001-01-01T00:00')
  await shows('they are listed again', /found/)
  assertClean()
})
