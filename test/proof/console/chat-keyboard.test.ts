import assert from 'node:assert/strict'
import { test } from 'node:test'
import { skip } from '../../support/browser.ts'
import { inState, message, say, sit } from '../../support/chat.ts'
import { openPages } from '../../support/service/pages.ts'

const pages = openPages()

test('with the keyboard alone a message is replied to, and a reply is given up', { skip }, async () => {
  const { page, assertClean } = await pages.browser.open()
  await sit(page, pages.url, 'keys', 'Ada')
  // The field gets the focus after the line above it is drawn; keys that come sooner would go to the button.
  const writing = page.locator('input:focus, textarea:focus')
  for (const text of ['first', 'second']) {
    await say(page, 'Ada', text)
    await inState(page, text, 'final').waitFor()
  }
  await page.getByRole('button', { name: 'Reply to “first”' }).press('Enter')
  await page.getByText('Reply to Ada: first').waitFor()
  await writing.waitFor()
  await page.keyboard.type('a reply')
  await page.keyboard.press('Enter')
  await inState(page, 'a reply', 'final').waitFor()
  assert.equal(await message(page, 'first').locator('[data-message="a reply"]').count(), 1, 'under its parent')

  await page.getByRole('button', { name: 'Reply to “second”' }).press('Enter')
  await page.getByText('Reply to Ada: second').waitFor()
  await writing.waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.type('no reply')
  await page.keyboard.press('Enter')
  await inState(page, 'no reply', 'final').waitFor()
  assert.equal(await message(page, 'second').locator('[data-message="no reply"]').count(), 0)
  assertClean()
})
