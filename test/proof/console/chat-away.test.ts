import assert from 'node:assert/strict'
import { test } from 'node:test'
import { buildPages } from '../../../console/build.ts'
import { until } from '../../../src/testing/until.ts'
import { openBrowser, skip } from '../../support/browser.ts'
import { inState, lines, message, online, openChatService, say, sayMany, sit, talker } from '../../support/chat.ts'
import { demoKey } from '../../support/service/openapi/opened.ts'

/** Past the pause between two looks for what a room no longer keeps. */
const SWEPT_MS = 60_000

test('away for longer than a room keeps its messages: both windows show where messages are missing, and how many', {
  skip,
}, async () => {
  await buildPages()
  await using service = await openChatService({
    ONCEONLY_RETAIN_CHAT_MESSAGES: '3',
    ONCEONLY_SWEEP_EVERY_MS: '100',
  })
  await using browser = await openBrowser()
  const { url, advance } = service
  const ask = async (method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${demoKey}`, 'content-type': 'application/json' }
    const response = await fetch(url + path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) })
    assert.ok(response.ok, `${method} ${path}: ${response.status}`)
    return (await response.json()) as { messages: readonly { client: string; body: { by: string; text: string } }[] }
  }
  const messages = async () => (await ask('GET', '/api/chat/rooms/away/messages')).messages

  const { page: ada, assertClean } = await browser.open()
  const { page: grace } = await browser.open()
  await sit(ada, url, 'away', 'Ada')
  await sit(grace, url, 'away', 'Grace')
  await say(ada, 'Ada', 'shall we ship?')
  await inState(grace, 'shall we ship?', 'final').waitFor()
  const [question] = await messages()
  const { client } = question ?? assert.fail()
  await ask('PUT', `/api/chat/clients/${client}/link`, { offlineMs: 600_000 })
  await ada.locator('[data-link="connecting"]').waitFor()
  // A reply, and then more than the room keeps.
  await say(grace, 'Grace', 'yes, ship it', 'shall we ship?')
  await inState(grace, 'yes, ship it', 'final').waitFor()
  const linus = await talker(url, 'away')
  await sayMany(linus, ['three', 'four', 'five', 'six'])
  await say(grace, 'Grace', 'the last word', 'yes, ship it')
  await inState(grace, 'the last word', 'final').waitFor()
  await advance(SWEPT_MS)
  await until('the room keeps three', messages, ({ length }) => length === 3)
  await ask('PUT', `/api/chat/clients/${client}/link`, {})
  await online(ada, 'Ada')
  await inState(ada, 'the last word', 'final').waitFor()
  assert.deepEqual(await lines(ada), [
    'shall we ship?',
    '3 messages are missing here: they are no longer kept.',
    'five',
    'six',
    'the last word',
  ])
  // It replies to a message that she never got.
  await message(ada, 'the last word').getByText('yes, ship it').waitFor()
  await message(ada, 'the last word').getByText('no longer kept').waitFor()

  // A later client, and one that reloads, find the beginning missing.
  await grace.reload()
  await inState(grace, 'the last word', 'final').waitFor()
  assert.deepEqual(await lines(grace), ['Messages before this are no longer kept.', 'five', 'six', 'the last word'])
  await say(ada, 'Ada', 'back again')
  await inState(grace, 'back again', 'final').waitFor()
  await linus.stop()
  assertClean()
})

test('what a forgotten client may have sent before is marked, and sent again only on demand', { skip }, async () => {
  await buildPages()
  await using service = await openChatService({ ONCEONLY_RETAIN_CHAT_DAYS: '1', ONCEONLY_SWEEP_EVERY_MS: '100' })
  await using browser = await openBrowser()
  const { page } = await browser.open()
  const { page: grace } = await browser.open()
  await sit(page, service.url, 'doubt', 'Ada')
  await say(page, 'Ada', 'first')
  await inState(page, 'first', 'final').waitFor()
  await page.getByRole('button', { name: 'Drop 30 s' }).click()
  await say(page, 'Ada', 'second')
  await inState(page, 'second', 'pending').waitFor()
  const again = await page.context().newPage()
  await page.close()
  // Past the time for which a room remembers its clients, a week longer than messages.
  await service.advance(9 * 24 * 3_600_000)
  await until('the room is empty, and has forgotten its clients', async () => {
    const headers = { authorization: `Bearer ${demoKey}` }
    const response = await fetch(`${service.url}/api/chat/rooms/doubt/messages`, { headers })
    return ((await response.json()) as { messages: readonly unknown[] }).messages.length === 0
  })
  await sit(grace, service.url, 'doubt', 'Grace')
  await sit(again, service.url, 'doubt', 'Ada')
  await inState(again, 'second', 'doubtful').waitFor()
  await again.getByText('No region remembers whether one of your messages arrived').waitFor()
  assert.equal(await message(grace, 'second').count(), 0)
  // The decision is its author’s, also after a reload.
  await again.reload()
  await inState(again, 'second', 'doubtful').waitFor()
  await again.getByRole('button', { name: 'Send again' }).click()
  for (const window of [again, grace]) {
    await inState(window, 'second', 'final').waitFor()
    assert.equal(await message(window, 'second').count(), 1)
  }
  await again.reload()
  await inState(again, 'second', 'final').waitFor()
  assert.equal(await message(again, 'second').count(), 1)
})

test('a window that the server does not let in says why', { skip }, async () => {
  await buildPages()
  await using service = await openChatService({ ONCEONLY_QUOTA_ROOMS: '1' })
  await using browser = await openBrowser()
  const { page } = await browser.open()
  await sit(page, service.url, 'first', 'Ada')
  await page.goto(`${service.url}/chat?room=second&as=Ada`)
  await page.getByText('the workspace keeps 1 of 1 rooms').waitFor()
})
