import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { buildPages } from '../../../console/build.ts'
import { openBrowser, skip, type TestBrowser } from '../../support/browser.ts'
import { inState, message, say, sit } from '../../support/chat.ts'
import { type Opened, openedService } from '../../support/service/openapi/opened.ts'

let opened: Opened
let browser: TestBrowser

before(async () => {
  if (skip !== false) return
  await buildPages()
  opened = await openedService()
  browser = await openBrowser()
})
after(async () => {
  if (skip !== false) return
  await browser[Symbol.asyncDispose]()
  await opened[Symbol.asyncDispose]()
})

test('with the keyboard alone a message is replied to, and a reply is given up', { skip }, async () => {
  const { page, assertClean } = await browser.open()
  await sit(page, opened.service.url, 'keys', 'Ada')
  for (const text of ['first', 'second']) {
    await say(page, 'Ada', text)
    await inState(page, text, 'final').waitFor()
  }
  await page.getByRole('button', { name: 'Reply to “first”' }).press('Enter')
  await page.getByText('Reply to Ada: first').waitFor()
  await page.keyboard.type('a reply')
  await page.keyboard.press('Enter')
  await inState(page, 'a reply', 'final').waitFor()
  assert.equal(await message(page, 'first').locator('[data-message="a reply"]').count(), 1, 'under its parent')

  await page.getByRole('button', { name: 'Reply to “second”' }).press('Enter')
  await page.getByText('Reply to Ada: second').waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.type('no reply')
  await page.keyboard.press('Enter')
  await inState(page, 'no reply', 'final').waitFor()
  assert.equal(await message(page, 'second').locator('[data-message="no reply"]').count(), 0)
  assertClean()
})
