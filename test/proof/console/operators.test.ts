import assert from 'node:assert/strict'
import { test } from 'node:test'
import { notDone } from 'onceonly'
import { createEngine, defineRun } from 'onceonly/run'
import type { Page } from 'playwright-core'
import { until } from '../../../src/testing/until.ts'
import { skip, type WatchedPage } from '../../support/browser.ts'
import { standing } from '../../support/console/stand.ts'
import { quietLedger } from '../../support/quiet-ledger.ts'
import { demoKey, operatorToken } from '../../support/service/openapi/opened.ts'

const stand = standing()

async function signIn(address = ''): Promise<WatchedPage> {
  const watched = await stand.browser.open()
  const { page } = watched
  await page.goto(`${stand.opened.service.url}/console${address}`)
  await page.getByLabel('Token').fill(operatorToken)
  await page.keyboard.press('Enter')
  await page.getByRole('navigation', { name: 'Pages' }).waitFor()
  return watched
}

function escalate(key: string, targetQueue: string): Promise<Response> {
  const headers = { authorization: `Bearer ${demoKey}`, 'content-type': 'application/json', 'idempotency-key': key }
  const body = JSON.stringify({ caseId: 'CASE-100', targetQueue })
  return fetch(`${stand.opened.service.url}/case-escalations`, { method: 'POST', headers, body })
}

/** What the legend of a chart says about its newest value. */
async function newest(page: Page, chart: string, series: string): Promise<number> {
  const text = await page
    .getByRole('figure', { name: chart })
    .locator('li', { hasText: series })
    .locator('b')
    .innerText()
  return Number.parseFloat(text)
}

test('charts show what was before the page was opened, also after a reload and on a longer range', {
  skip,
}, async () => {
  for (const [at, queue] of ['LEGAL_REVIEW', 'BILLING'].entries()) await escalate(`chart-${at}`, queue)
  const { page, assertClean } = await signIn()
  await page.getByRole('figure', { name: 'Decisions per second' }).locator('canvas').waitFor()
  await until(
    'the escalations are on the chart',
    () => newest(page, 'Decisions', 'first attempts'),
    (value) => value > 0,
  )
  assert.ok((await newest(page, 'Latency', 'p95')) > 0, 'percentiles beside the mean')
  await page.getByRole('button', { name: '24 hours' }).click()
  await until(
    'the address has the range',
    () => page.evaluate('location.search'),
    (search) => search === '?range=24h',
  )
  await page.reload()
  await page.getByRole('button', { name: '24 hours', pressed: true }).waitFor()
  await until(
    'they are still there',
    () => newest(page, 'Decisions', 'first attempts'),
    (value) => value > 0,
  )
  assertClean()
})

test('failed runs raise a card, and many of them are resumed after a preview', { skip }, async () => {
  let isMended = false
  const deliver = defineRun('deliver', (run) =>
    run.step('send', { retry: { attempts: 1 } }, () => {
      if (!isMended) throw notDone(new Error('the door stays shut'))
      return 'delivered'
    }),
  )
  await using engine = await createEngine({ ledger: quietLedger(stand.store), runs: [deliver] })
  const runs = await Promise.all(
    ['one', 'two'].map((name) =>
      engine.start(deliver, { runId: `0123456789abcdef0123456789abcdef/${name}`, input: null }),
    ),
  )
  for (const run of runs) await assert.rejects(run.result({ waitMs: 120_000 }), /the door stays shut/)
  const { page, assertClean } = await signIn()
  await page.getByRole('link', { name: /^2 Failed runs/ }).click()
  await page
    .getByRole('cell', { name: /the door stays shut/ })
    .first()
    .waitFor()
  assert.equal(await page.evaluate('location.search'), '?state=failed&since=1d', 'the filters are in the address')
  const shown = await page.locator('.short-id').allInnerTexts()
  assert.deepEqual(shown.map((text) => text.replaceAll('\n', '')).toSorted(), ['012345…/one', '012345…/two'])

  isMended = true
  await page.getByRole('button', { name: 'Resume several' }).click()
  await page.getByRole('dialog').getByText('Preview: 2 runs').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Resume 2' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  for (const run of runs) assert.equal(await run.result({ waitMs: 120_000 }), 'delivered')
  await page.goto(`${stand.opened.service.url}/console/runs?definition=deliver&state=succeeded`)
  await page.getByRole('cell', { name: /\/one$/ }).click()
  await page.getByRole('list', { name: 'Timeline' }).getByText('send').waitFor()
  assertClean()
})

test('an id leads to its record from the address and from the field, and a list is saved as CSV', {
  skip,
}, async () => {
  await escalate('found-by-id', 'TIER_2')
  const { page, assertClean } = await signIn('/find?id=found-by-id')
  await page.getByRole('cell', { name: 'found-by-id' }).first().waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('nothing-has-this')
  await page.keyboard.press('Enter')
  await page.getByText('Nothing has the id “nothing-has-this”').waitFor()

  await page.goto(`${stand.opened.service.url}/console/records?operation=case.escalate`)
  await page.getByRole('cell', { name: 'found-by-id' }).waitFor()
  // A browser that another program drives keeps no files: what it would save is read.
  await page.evaluate(`{ const make = URL.createObjectURL
    URL.createObjectURL = (file) => { file.text().then((text) => { window.saved = text }); return make.call(URL, file) } }`)
  await page.getByRole('button', { name: 'Export records as CSV' }).click()
  const text = String(await until('the list is saved', () => page.evaluate('window.saved')))
  const [head = '', ...rows] = text.trimEnd().split('\r\n')
  assert.match(head, /identity\.key/)
  assert.ok(rows.some((row) => row.includes('found-by-id')))
  assertClean()
})

test('records of users stand apart from internal ones', { skip }, async () => {
  const { page, assertClean } = await signIn('/records')
  await page.getByRole('cell', { name: 'case.escalate' }).first().waitFor()
  assert.equal(await page.getByRole('cell', { name: /^inbox\./ }).count(), 0)
  await page.locator('#filter-kind').selectOption('internal')
  await page
    .getByRole('cell', { name: /^inbox\./ })
    .first()
    .waitFor()
  assert.equal(await page.getByRole('cell', { name: 'case.escalate' }).count(), 0)
  assertClean()
})
