import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type SqliteStore, sqliteStore } from 'onceonly/sqlite'
import type { Page } from 'playwright-core'
import { buildPages } from '../../../console/build.ts'
import { type Axe, openAxe } from '../../support/axe.ts'
import { loaded, openBrowser, skip, type TestBrowser } from '../../support/browser.ts'
import { systems } from '../../support/console/home.ts'
import { makeEvents, makeMany, many } from '../../support/console/many.ts'
import { details, dialogs, openFirst, openForDialog, places } from '../../support/console/places.ts'
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
  return await findings(page, address)
}

/** What axe finds, and whether the page is wider than the window. */
async function findings(page: Page, where: string): Promise<readonly string[]> {
  const overflow = await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
  const wide = overflow === 0 ? [] : [`${where}: ${String(overflow)} px too wide`]
  return [...wide, ...(await axe.findings(page, where))]
}

async function lookInto(page: Page, address: string, name: string): Promise<readonly string[]> {
  await openFirst(page, opened.service.url, address)
  return await findings(page, name)
}

async function lookAtDialog(page: Page, address: string, button: string, text: string): Promise<readonly string[]> {
  await openForDialog(page, opened.service.url, address)
  await page.getByRole('button', { name: button }).first().click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText(text).first().waitFor()
  await loaded(page)
  const checked = await dialog.getByRole('radio', { checked: true }).count()
  const chosen = checked === 0 ? [] : [`${address}, ${button}: something is chosen beforehand`]
  const found = await findings(page, `${address}, ${button}`)
  // What has the focus when a dialog opens is the way back.
  await page.keyboard.press('Enter')
  await dialog.waitFor({ state: 'detached' })
  return [...chosen, ...found]
}

async function lookAtHome(page: Page): Promise<readonly string[]> {
  await page.goto(opened.service.url)
  for (const { button } of systems) {
    await page.getByRole('button', { name: button }).click()
    await page
      .locator('section', { has: page.getByRole('button', { name: button }) })
      .locator('.verdict')
      .waitFor()
  }
  return await findings(page, 'the home page with answers')
}

for (const { name, ...options } of looks) {
  test(`no finding of axe on any page, ${name}, with ${many.records} records and ${many.runs} runs`, {
    skip,
  }, async (t) => {
    if (missing !== false) return t.skip(missing)
    const { page, assertClean } = await browser.open(options)
    const found = [...(await signIn(page))]
    for (const [address, title] of places) found.push(...(await look(page, address, title)))
    for (const [address, what] of details) found.push(...(await lookInto(page, address, what)))
    assert.deepEqual(found, [])
    assertClean()
  })

  test(`no finding of axe in dialogs and on the home page with its answers, ${name}`, { skip }, async (t) => {
    if (missing !== false) return t.skip(missing)
    const { page } = await browser.open(options)
    const found = [...(await signIn(page))]
    for (const [address, button, text] of dialogs) found.push(...(await lookAtDialog(page, address, button, text)))
    found.push(...(await lookAtHome(page)))
    assert.deepEqual(found, [])
  })
}
