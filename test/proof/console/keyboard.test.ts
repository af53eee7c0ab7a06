import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { createLedger } from 'onceonly'
import { sqliteStore } from 'onceonly/sqlite'
import { until } from '../../../src/testing/until.ts'
import { skip } from '../../support/browser.ts'
import { focused, tabTo } from '../../support/console/keys.ts'
import { operatorToken } from '../../support/service/openapi/opened.ts'
import { openPages } from '../../support/service/pages.ts'

const pages = openPages()

test('an unknown outcome is found and resolved without a mouse', { skip }, async () => {
  await using store = sqliteStore(join(pages.data, 'onceonly.db'), { testClock: true })
  await using ledger = createLedger({ store, background: false })
  const pay = ledger.operation({ name: 'pay', effect: 'external', onAbandoned: 'hold' })
  const identity = { tenant: 'demo', caller: 'shop', key: 'order-9' }
  await pay.execute(identity, null, () => Promise.reject(new Error('vanished')))

  const { page, assertClean } = await pages.browser.open()
  await page.goto(`${pages.url}/console`)
  await page.getByLabel('Token').waitFor()
  await tabTo(page, /^Token/)
  await page.keyboard.type(operatorToken)
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: /Unknown outcomes/ }).waitFor()
  await tabTo(page, /Unknown outcomes/)
  await page.keyboard.press('Enter')
  await page.getByRole('cell', { name: 'order-9' }).waitFor()
  await tabTo(page, /order-9/)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Ten questions' }).waitFor()
  await tabTo(page, /^Resolve/)
  await page.keyboard.press('Enter')

  const dialog = page.getByRole('dialog')
  await dialog.waitFor()
  const inside = () => page.evaluate("document.activeElement.closest('dialog') !== null")
  await until('the focus is in the dialog', inside, (value) => value === true)
  assert.equal(await dialog.getByRole('radio', { checked: true }).count(), 0, 'nothing is chosen beforehand')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  assert.match(String(await page.evaluate(focused)), /^Resolve/, 'the focus is back where it was')
  await page.keyboard.press('Enter')
  await dialog.waitFor()
  await tabTo(page, /^It happened/)
  await page.keyboard.press('Space')
  await tabTo(page, /^Its result/)
  await page.keyboard.type('{"paid":true}')
  await tabTo(page, /^Resolve/)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: /succeeded/ }).waitFor()
  const retried = await pay.execute(identity, null, async () => 'never')
  assert.match(JSON.stringify(retried), /paid/)
  assertClean()
})
