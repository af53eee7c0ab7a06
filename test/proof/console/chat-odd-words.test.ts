import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { buildPages } from '../../../console/build.ts'
import { openBrowser, skip, type TestBrowser } from '../../support/browser.ts'
import { inState, online, say, sit } from '../../support/chat.ts'
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

test('a message with an emoji where its quote ends can be replied to', { skip }, async () => {
  const { page, assertClean } = await browser.open()
  await sit(page, opened.service.url, 'emoji', 'Ada')
  const text = `${'x'.repeat(118)}😀 and so on`
  await say(page, 'Ada', text)
  await inState(page, text, 'final').waitFor()
  await say(page, 'Ada', 'indeed', text)
  await inState(page, 'indeed', 'final').waitFor()
  assertClean()
})

test('a name with an emoji where it is cut sits down, and talks', { skip }, async () => {
  const { page, assertClean } = await browser.open()
  const name = 'a'.repeat(39)
  await page.goto(`${opened.service.url}/chat?room=emoji-names&as=${encodeURIComponent(`${name}😀`)}`)
  await online(page, name)
  await say(page, name, 'hello')
  await inState(page, 'hello', 'final').waitFor()
  assertClean()
})

test('an address that names no room says so, and does not blame the browser', { skip }, async () => {
  const { page, assertClean } = await browser.open()
  for (const room of ['my room!', '']) {
    await page.goto(`${opened.service.url}/chat?room=${encodeURIComponent(room)}`)
    const alert = await page.getByRole('alert').innerText()
    assert.match(alert, new RegExp(`“${room}” cannot be the name of a room`))
    assert.doesNotMatch(alert, /browser/)
  }
  assertClean()
})
