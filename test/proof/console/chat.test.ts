import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromShiViz } from 'onceonly/stream/parts'
import type { Page } from 'playwright-core'
import { drawn } from '../../../console/src/parts/arrows.ts'
import { skip } from '../../support/browser.ts'
import { demoKey } from '../../support/service/openapi/opened.ts'
import { openPages } from '../../support/service/pages.ts'

const room = 'test'
const pages = openPages()

/** A window with one user. */
async function sit(name: string, region: string) {
  const { page, assertClean } = await pages.browser.open()
  await page.goto(`${pages.url}/chat?room=${room}&as=${name}&region=${region}`)
  await page.locator(`[aria-label="${name}"][data-link="online"]`).waitFor()
  return { page, assertClean, name }
}

async function say(page: Page, name: string, text: string, replyTo?: string): Promise<void> {
  if (replyTo !== undefined) await page.getByRole('button', { name: `Reply to “${replyTo}”` }).click()
  await page.getByRole('textbox', { name: `${name} says` }).fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

const message = (page: Page, text: string) => page.locator(`[data-message=${JSON.stringify(text)}]`)
const inState = (page: Page, text: string, state: string) =>
  message(page, text).locator(`> article[data-state="${state}"]`)

/** Every message with its parent, in the order of the page. */
function standing(page: Page): Promise<readonly string[]> {
  return page.evaluate(`[...document.querySelectorAll('[data-message]')].map((each) =>
    (each.parentElement.closest('[data-message]')?.dataset.message ?? '') + ' < ' + each.dataset.message)`)
}

test('two windows: a region is cut, both sides reply, it heals, and everything falls into its place', {
  skip,
}, async () => {
  const ada = await sit('Ada', 'frankfurt')
  const grace = await sit('Grace', 'tokyo')
  await say(ada.page, 'Ada', 'lunch?')
  await inState(grace.page, 'lunch?', 'final').waitFor()

  await ada.page.getByRole('button', { name: 'Cut tokyo' }).click()
  await grace.page.getByRole('button', { name: 'Heal tokyo' }).waitFor()
  await say(ada.page, 'Ada', 'at noon', 'lunch?')
  await say(grace.page, 'Grace', 'not today', 'lunch?')
  // Each side continues by itself; nothing of the other one arrives.
  await inState(ada.page, 'at noon', 'accepted')
    .or(inState(ada.page, 'at noon', 'final'))
    .waitFor()
  await inState(grace.page, 'not today', 'accepted').waitFor()
  assert.equal(await message(ada.page, 'not today').count(), 0)
  assert.equal(await message(grace.page, 'at noon').count(), 0)

  await ada.page.getByRole('button', { name: 'Heal tokyo' }).click()
  for (const { page } of [ada, grace]) {
    for (const text of ['lunch?', 'at noon', 'not today']) await inState(page, text, 'final').waitFor()
    assert.equal(await page.getByText('at the same time').count(), 2)
  }
  const order = await standing(ada.page)
  assert.deepEqual(order.toSorted(), [' < lunch?', 'lunch? < at noon', 'lunch? < not today'])
  assert.deepEqual(await standing(grace.page), order)
  await assertSameArrows(ada.page)
  await assertSameArrows(grace.page)
  await grace.page.setViewportSize({ width: 360, height: 640 })
  const wider = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
  assert.equal(await grace.page.evaluate(wider), 0, 'a phone shows it all without scrolling sideways')
  ada.assertClean()
  grace.assertClean()
})

/** The diagram has the arrows of the log that the server writes for ShiViz, and no others. */
async function assertSameArrows(page: Page): Promise<void> {
  const ask = async (what: string) => {
    const url = `${pages.url}/api/chat/rooms/${room}/${what}?region=frankfurt`
    const response = await fetch(url, { headers: { authorization: `Bearer ${demoKey}` } })
    assert.equal(response.status, 200)
    return response
  }
  const { messages } = (await (await ask('messages')).json()) as {
    readonly messages: readonly { readonly client: string; readonly body: { readonly by: string } }[]
  }
  const names = new Map(messages.map(({ client, body }) => [client, body.by]))
  const history = fromShiViz(await (await ask('shiviz')).text())
  const place = (at: number) => {
    const { host, clock } = history[at] ?? assert.fail()
    return `${names.get(host)}:${clock[host]}`
  }
  const expected = drawn(history).arrows.map(({ from, to }) => `${place(from)}→${place(to)}`)
  const shown = await page.evaluate(`[...document.querySelectorAll('[data-arrow]')].map((each) => each.dataset.arrow)`)
  assert.ok(expected.length > 0)
  assert.deepEqual((shown as string[]).toSorted(), expected.toSorted())
}

test('what is said without a line survives a reload, and what a stranger says is text', { skip }, async () => {
  const radia = await sit('Radia', 'sydney')
  await radia.page.getByRole('button', { name: 'Slow 500 ms' }).click()
  await say(radia.page, 'Radia', '<img src=x onerror=alert(1)>')
  await inState(radia.page, '<img src=x onerror=alert(1)>', 'final').waitFor()
  assert.equal(await radia.page.locator('.messages img').count(), 0)

  await radia.page.getByRole('button', { name: 'Drop 30 s' }).click()
  await radia.page.locator('[data-link="dropped"]').waitFor()
  await say(radia.page, 'Radia', 'kept')
  await inState(radia.page, 'kept', 'pending').waitFor()
  await radia.page.reload()
  await inState(radia.page, 'kept', 'final').waitFor()
  assert.equal(await message(radia.page, 'kept').count(), 1)
  await assertTwins(radia.page)
  radia.assertClean()
})

/** A duplicated window that only the server can detect: one of the two gets a notice, and both continue. */
async function assertTwins(page: Page): Promise<void> {
  const name = await page.evaluate(`sessionStorage.getItem('onceonly-chat-tab')`)
  const twin = await page.context().newPage()
  await twin.addInitScript(`delete Navigator.prototype.locks
    sessionStorage.setItem('onceonly-chat-tab', ${JSON.stringify(name)})`)
  await twin.goto(page.url())
  await Promise.any([page, twin].map((each) => each.getByText('Another window had the same identity').waitFor()))
  const words = ['of the one', 'of the other']
  for (const [at, each] of [page, twin].entries()) await say(each, 'Radia', words[at] ?? '')
  for (const each of [page, twin]) {
    for (const text of words) await inState(each, text, 'final').waitFor()
    for (const text of words) assert.equal(await message(each, text).count(), 1)
  }
}
