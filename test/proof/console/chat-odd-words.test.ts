import assert from 'node:assert/strict'
import { test } from 'node:test'
import { skip } from '../../support/browser.ts'
import { inState, online, say, sit } from '../../support/chat.ts'
import { openPages } from '../../support/service/pages.ts'

const pages = openPages()

test('a message with an emoji where its quote ends can be replied to', { skip }, async () => {
  const { page, assertClean } = await pages.browser.open()
  await sit(page, pages.url, 'emoji', 'Ada')
  const text = `${'x'.repeat(118)}😀 and so on`
  await say(page, 'Ada', text)
  await inState(page, text, 'final').waitFor()
  await say(page, 'Ada', 'indeed', text)
  await inState(page, 'indeed', 'final').waitFor()
  assertClean()
})

test('a name with an emoji where it is cut sits down, and talks', { skip }, async () => {
  const { page, assertClean } = await pages.browser.open()
  const name = 'a'.repeat(39)
  await page.goto(`${pages.url}/chat?room=emoji-names&as=${encodeURIComponent(`${name}😀`)}`)
  await online(page, name)
  await say(page, name, 'hello')
  await inState(page, 'hello', 'final').waitFor()
  assertClean()
})

test('an address that names no room says so, and does not blame the browser', { skip }, async () => {
  const { page, assertClean } = await pages.browser.open()
  for (const room of ['my room!', '']) {
    await page.goto(`${pages.url}/chat?room=${encodeURIComponent(room)}`)
    const alert = await page.getByRole('alert').innerText()
    assert.match(alert, new RegExp(`“${room}” cannot be the name of a room`))
    assert.doesNotMatch(alert, /browser/)
  }
  assertClean()
})
