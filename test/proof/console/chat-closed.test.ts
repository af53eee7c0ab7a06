import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import { buildPages } from '../../../console/build.ts'
import { until } from '../../../src/testing/until.ts'
import { skip } from '../../support/browser.ts'
import { inState, message, type OwnBrowser, online, openOwnBrowser, say, sit } from '../../support/chat.ts'
import { demoKey, type Opened, openedService } from '../../support/service/openapi/opened.ts'

let opened: Opened
let browser: OwnBrowser

before(async () => {
  if (skip !== false) return
  await buildPages()
  opened = await openedService()
  browser = await openOwnBrowser(['--host-resolver-rules=MAP chat.test 127.0.0.1'])
})
after(async () => {
  if (skip !== false) return
  await browser[Symbol.asyncDispose]()
  await opened[Symbol.asyncDispose]()
})

async function windowOf(room: string, name: string, region = 'frankfurt'): Promise<Page> {
  const page = await browser.context.newPage()
  await sit(page, opened.service.url, room, name, region)
  return page
}

/** Says something that cannot leave the window. */
async function sayOffline(page: Page, name: string, texts: readonly string[]): Promise<void> {
  await page.getByRole('button', { name: 'Drop 30 s' }).click()
  await page.locator('[data-link="dropped"]').waitFor()
  for (const text of texts) {
    await say(page, name, text)
    await inState(page, text, 'pending').waitFor()
  }
}

interface Kept {
  readonly client: string
  readonly cseq: number
  readonly body: { readonly by: string; readonly text: string }
}

async function kept(room: string): Promise<readonly Kept[]> {
  const url = `${opened.service.url}/api/chat/rooms/${room}/messages?region=frankfurt`
  const response = await fetch(url, { headers: { authorization: `Bearer ${demoKey}` } })
  return ((await response.json()) as { messages: readonly Kept[] }).messages
}

/** Every text once, in the log and in the window; all of one client, numbered without a gap. */
async function assertOnce(room: string, page: Page, texts: readonly string[]): Promise<void> {
  for (const text of texts) {
    await inState(page, text, 'final').waitFor()
    assert.equal(await message(page, text).count(), 1)
  }
  const messages = (await kept(room)).filter(({ body }) => body.by === 'Ada')
  assert.deepEqual(
    messages.map(({ body }) => body.text),
    texts,
  )
  assert.equal(new Set(messages.map(({ client }) => client)).size, 1, 'the client that wrote them sent them')
  assert.deepEqual(
    messages.map(({ cseq }) => cseq),
    texts.map((_, at) => at + 1),
  )
}

/** Databases of a user in a room. */
async function databases(page: Page, room: string, name: string): Promise<number> {
  const names = (await page.evaluate('indexedDB.databases()')) as readonly { readonly name: string }[]
  return names.filter((each) => each.name.endsWith(`/${room}/${name}`)).length
}

async function closeAll(context: BrowserContext): Promise<void> {
  await Promise.all(context.pages().map((page) => page.close()))
}

test('unsent messages of a closed tab are sent when the same user comes back', { skip }, async () => {
  const grace = await windowOf('again', 'Grace', 'tokyo')
  const ada = await windowOf('again', 'Ada')
  await say(ada, 'Ada', 'first')
  await inState(grace, 'first', 'final').waitFor()
  await sayOffline(ada, 'Ada', ['second', 'third'])
  await ada.close()
  const back = await windowOf('again', 'Ada')
  for (const page of [back, grace]) await assertOnce('again', page, ['first', 'second', 'third'])
  assert.equal(await databases(back, 'again', 'Ada'), 1, 'the client kept its database')
  await say(back, 'Ada', 'fourth')
  await assertOnce('again', grace, ['first', 'second', 'third', 'fourth'])
  await closeAll(browser.context)
})

test('what a closed tab had not sent is sent by whichever tab is open, once, and its database is deleted', {
  skip,
}, async () => {
  const grace = await windowOf('others', 'Grace', 'tokyo')
  const ada = await windowOf('others', 'Ada')
  await say(ada, 'Ada', 'first')
  await inState(grace, 'first', 'final').waitFor()
  await sayOffline(ada, 'Ada', ['second', 'third'])
  await ada.close()
  // Two tabs come at the same time, in another room: one of them has it to do.
  const two = await Promise.all([windowOf('elsewhere', 'Linus'), windowOf('elsewhere', 'Barbara')])
  await Promise.any(two.map((page) => page.getByText('Sent 2 messages of Ada in others').waitFor()))
  await assertOnce('others', grace, ['first', 'second', 'third'])
  const notices = await Promise.all(two.map((page) => page.getByText(/Sent 2 messages of Ada/).count()))
  assert.equal(notices.filter((count) => count === 1).length, 1)
  assert.equal(notices.filter((count) => count === 0).length, 1)
  await until('the database is gone', async () => (await databases(grace, 'others', 'Ada')) === 0)
  assert.equal(await databases(grace, 'others', 'Grace'), 1, 'an open window keeps its own')
  await closeAll(browser.context)
})

for (const how of ['close', 'kill'] as const) {
  test(`what a browser had not sent is sent after it was opened again (${how})`, { skip }, async () => {
    const room = `browser-${how}`
    const ada = await windowOf(room, 'Ada')
    await say(ada, 'Ada', 'first')
    await inState(ada, 'first', 'final').waitFor()
    await sayOffline(ada, 'Ada', ['second'])
    await browser.restart(how)
    const back = await windowOf(room, 'Ada')
    const grace = await windowOf(room, 'Grace', 'tokyo')
    for (const page of [back, grace]) await assertOnce(room, page, ['first', 'second'])
    await closeAll(browser.context)
  })
}

test('a message read before a reload stays a cause of messages sent after it', { skip }, async () => {
  const ada = await windowOf('floor', 'Ada')
  const grace = await windowOf('floor', 'Grace', 'tokyo')
  const linus = await windowOf('floor', 'Linus', 'sydney')
  await linus.evaluate(`new MutationObserver(() => {
    const texts = [...document.querySelectorAll('.messages .text')].map((each) => each.textContent)
    if (texts.includes('yes, ship it') && !texts.includes('shall we ship?')) window.wrong = true
  }).observe(document, { subtree: true, childList: true })`)
  await ada.getByRole('button', { name: 'Cut sydney' }).click()
  await ada.getByRole('button', { name: 'Heal sydney' }).waitFor()
  await say(ada, 'Ada', 'shall we ship?')
  await inState(grace, 'shall we ship?', 'final').waitFor()
  // Her new region has never heard of the question.
  await grace.goto(grace.url().replace('tokyo', 'sydney'))
  await online(grace, 'Grace')
  await say(grace, 'Grace', 'yes, ship it')
  await message(grace, 'yes, ship it').waitFor()
  await ada.getByRole('button', { name: 'Heal sydney' }).click()
  for (const page of [ada, grace, linus]) await inState(page, 'yes, ship it', 'final').waitFor()
  assert.equal(await linus.evaluate('window.wrong ?? false'), false, 'no answer before its question')
  assert.deepEqual(
    (await kept('floor')).map(({ body }) => body.text),
    ['shall we ship?', 'yes, ship it'],
  )
  await closeAll(browser.context)
})

/** A name that is not this machine’s: what browsers keep for secure pages is not there. */
test('over plain HTTP: two windows talk, and what a closed one had not sent is sent', { skip }, async () => {
  const url = new URL(opened.service.url)
  url.hostname = 'chat.test'
  const enter = async (name: string) => {
    const page = await browser.context.newPage()
    const breaches: string[] = []
    page.on('pageerror', (error) => breaches.push(error.message))
    await page.goto(`${url.origin}/chat?room=plain&as=${name}`)
    await page.getByLabel('API key').fill(demoKey)
    await page.keyboard.press('Enter')
    await online(page, name)
    assert.equal(await page.evaluate('isSecureContext'), false)
    return { page, breaches }
  }
  const [ada, grace] = [await enter('Ada'), await enter('Grace')]
  await say(ada.page, 'Ada', 'first')
  await inState(grace.page, 'first', 'final').waitFor()
  await ada.page.reload()
  await online(ada.page, 'Ada')
  await sayOffline(ada.page, 'Ada', ['second'])
  await ada.page.close({ runBeforeUnload: true })
  const back = await enter('Ada')
  for (const { page } of [back, grace]) await assertOnce('plain', page, ['first', 'second'])
  for (const { breaches } of [ada, grace, back]) assert.deepEqual(breaches, [])
})
