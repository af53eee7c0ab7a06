import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type SqliteStore, sqliteStore } from 'onceonly/sqlite'
import type { Page } from 'playwright-core'
import { buildPages } from '../../../console/build.ts'
import { type Axe, openAxe } from '../../support/axe.ts'
import { loaded, openBrowser, skip, type TestBrowser } from '../../support/browser.ts'
import { makeEvents, makeMany, many } from '../../support/console/many.ts'
import { type Opened, openedService, operatorToken } from '../../support/service/openapi/opened.ts'

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
  const filled = { url: opened.service.url, store }
  await makeEvents(filled)
  await makeMany(filled)
})
after(async () => {
  if (missing !== false) return
  await browser[Symbol.asyncDispose]()
  await store.stop()
  await opened[Symbol.asyncDispose]()
})

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
  ['/docs#case.escalate', /Onceonly/],
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
