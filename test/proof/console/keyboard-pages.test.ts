import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { loaded, skip, type WatchedPage } from '../../support/browser.ts'
import { systems } from '../../support/console/home.ts'
import { faultsByTab, focused, press, tabTo } from '../../support/console/keys.ts'
import { makeEvents, makeLetters } from '../../support/console/many.ts'
import { details, dialogs, openFirst, openForDialog, places } from '../../support/console/places.ts'
import { standing } from '../../support/console/stand.ts'
import { operatorToken } from '../../support/service/openapi/opened.ts'

const stand = standing(async ({ opened, store }) => {
  const filled = { url: opened.service.url, store }
  await makeEvents(filled)
  await makeLetters(filled, 3)
})

async function signIn(address = ''): Promise<WatchedPage> {
  const watched = await stand.browser.open()
  const { page } = watched
  await page.goto(`${stand.opened.service.url}/console${address}`)
  await page.getByLabel('Token').waitFor()
  await tabTo(page, /^Token/)
  await page.keyboard.type(operatorToken)
  await page.keyboard.press('Enter')
  await page.getByRole('navigation', { name: 'Pages' }).waitFor()
  return watched
}

/** The page at `/docs` is that of a library of its own. */
const ours = places.filter(([address]) => !address.startsWith('/docs'))

test('Tab reaches everything on every page, and what has the focus shows it', { skip }, async () => {
  const { page, assertClean } = await signIn()
  const faults: string[] = []
  for (const [address, title] of ours) {
    await page.goto(stand.opened.service.url + address)
    await page.getByRole('heading', { name: title, level: 1 }).waitFor()
    await loaded(page)
    faults.push(...(await faultsByTab(page)).map((fault) => `${address}: ${fault}`))
  }
  for (const [address, what] of details) {
    await openFirst(page, stand.opened.service.url, address)
    faults.push(...(await faultsByTab(page)).map((fault) => `${what}: ${fault}`))
  }
  assert.deepEqual(faults, [])
  assertClean()
})

test('every dialog is opened, gone through and left by keyboard, and the focus comes back', {
  skip,
}, async () => {
  const { page, assertClean } = await signIn()
  const dialog = page.getByRole('dialog')
  const faults: string[] = []
  for (const [address, button, text] of dialogs) {
    await openForDialog(page, stand.opened.service.url, address)
    await press(page, new RegExp(`^${button}`))
    await dialog.getByText(text).first().waitFor()
    await loaded(page)
    faults.push(...(await faultsByTab(page)).map((fault) => `${address}, ${button}: ${fault}`))
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    const back = String(await page.evaluate(focused))
    if (!back.startsWith(button)) faults.push(`${address}, ${button}: the focus is on “${back}” afterwards`)
  }
  assert.deepEqual(faults, [])
  assertClean()
})

test('runs are resumed, a dead letter is redriven, and a queue is paused without a mouse', { skip }, async () => {
  const { page, assertClean } = await signIn('/runs?definition=deliver&state=failed')
  const dialog = page.getByRole('dialog')
  await page.getByRole('cell', { name: /deliver-1/ }).waitFor()
  await press(page, /^Resume several/)
  await dialog.getByText('Preview: 1 run').waitFor()
  await press(page, /^Resume 1/)
  await dialog.waitFor({ state: 'detached' })
  await page.getByText('No run matches these filters.').waitFor()

  await press(page, /^Events/)
  await page.getByText('3 dead letters').or(page.getByText('refused').first()).first().waitFor()
  await press(page, /^Choose all/)
  await press(page, /^Redrive 3/)
  await dialog.getByText('Preview: 3 dead letters').waitFor()
  await press(page, /^Redrive$/)
  await page.getByText('No dead letters').waitFor()

  await press(page, /^Runs/)
  await press(page, /^Queues/)
  await page.getByRole('heading', { name: 'Queues' }).waitFor()
  await loaded(page)
  await press(page, /^Pause mail/)
  await dialog.waitFor()
  await press(page, /^Pause the queue/)
  await page.getByRole('row', { name: /^mail/ }).getByText('paused').waitFor()
  assertClean()
})

test('an id is found, a list saved, a saga and a campaign opened without a mouse', { skip }, async () => {
  const { page, assertClean } = await signIn()
  await page.keyboard.press('/')
  await page.keyboard.type('seen-1')
  await page.keyboard.press('Enter')
  await page.getByRole('cell', { name: 'seen-1' }).first().waitFor()
  await press(page, /^[0-9a-f]{32}/)
  await page.getByRole('heading', { name: 'Ten questions' }).waitFor()

  await press(page, /^Records/)
  await page.getByRole('cell', { name: 'seen-1' }).first().waitFor()
  // A browser that another program drives keeps no files: what it would save is read.
  await page.evaluate(`{ const make = URL.createObjectURL
    URL.createObjectURL = (file) => { file.text().then((text) => { window.saved = text }); return make.call(URL, file) } }`)
  await press(page, /^Export records as JSON/)
  const saved = String(await until('the list is saved', () => page.evaluate('window.saved')))
  assert.ok(saved.includes('seen-1'))

  await press(page, /^Sagas/)
  await page.getByRole('heading', { name: 'Sagas', level: 1 }).waitFor()
  await press(page, /^SearchImportJob/)
  await page.getByRole('heading', { name: 'SearchImportJob', level: 1 }).waitFor()
  await loaded(page)
  const instance = page.getByRole('main').getByRole('table').last().getByRole('link').first()
  const id = (await instance.innerText()).trim().split('\n')[0] ?? ''
  await press(page, new RegExp(`^${id}`))
  await page.waitForURL(/sagas\/SearchImportJob\//)

  await press(page, /^Campaigns/)
  await page.getByRole('cell', { name: 'seen' }).waitFor()
  await press(page, /^seen/)
  await page.getByRole('heading', { name: /seen/, level: 1 }).waitFor()
  assertClean()
})

test('the five buttons of the first page are pressed without a mouse', { skip }, async () => {
  const { page, assertClean } = await stand.browser.open()
  await page.goto(stand.opened.service.url)
  for (const { name, button, verdict } of systems) {
    const system = page.getByRole('region', { name })
    await system.getByRole('button', { name: button, disabled: false }).waitFor()
    await press(page, new RegExp(`^${button}`))
    const shown = system.locator('.verdict')
    await shown.waitFor()
    assert.match(
      ((await shown.textContent()) ?? '').replace(/^Kept /, ''),
      new RegExp(verdict.source.replace(/\$$/, '')),
    )
  }
  // The same case under another key is refused.
  assertClean(/status of 409 \(Conflict\)$/)
})
