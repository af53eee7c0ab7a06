import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { buildPages } from '../../../console/build.ts'
import { until } from '../../../src/testing/until.ts'
import { openBrowser, skip } from '../../support/browser.ts'
import { inState, message, say, sayMany, sit, talker } from '../../support/chat.ts'
import { openedService } from '../../support/service/openapi/opened.ts'

const texts = Array.from({ length: 1_000 }, (_, at) => `number ${at + 1}`)

/** Counts, from the beginning of the page on, what costs a browser time: rows that are made, and writes to the disk. */
const counting = `
  window.work = { rows: 0, writes: 0, changes: 0 }
  const transaction = IDBDatabase.prototype.transaction
  IDBDatabase.prototype.transaction = function (stores, mode, ...rest) {
    if (mode === 'readwrite') work.writes += 1
    return transaction.call(this, stores, mode, ...rest)
  }
  new MutationObserver((changes) => {
    for (const { target, addedNodes } of changes) {
      if (target.nodeType === 1 && target.closest('.messages') !== null) work.changes += 1
      for (const node of addedNodes) {
        if (node.nodeType === 1) work.rows += node.matches('.message') ? 1 : node.querySelectorAll('.message').length
      }
    }
  }).observe(document, { subtree: true, childList: true, attributes: true, characterData: true })`

interface Work {
  readonly rows: number
  readonly writes: number
  readonly changes: number
}

const workOf = (page: Page) => page.evaluate<Work>('work')
const drawn = (page: Page) => page.locator('.messages .message').count()

test('a thousand messages in two windows: little is drawn, nothing is missing, and both continue', {
  skip,
}, async (t) => {
  await buildPages()
  await using opened = await openedService()
  await using browser = await openBrowser()
  const { url } = opened.service
  const linus = await talker(url, 'many')
  await sayMany(linus, texts)
  const windows = []
  for (const name of ['Ada', 'Grace']) {
    const { page, assertClean } = await browser.open()
    await page.addInitScript(counting)
    const beganMs = performance.now()
    await sit(page, url, 'many', name)
    await page.locator('.messages[data-rows="1000"]').waitFor()
    await message(page, 'number 1000').waitFor()
    t.diagnostic(`${name}: ${texts.length} messages after ${Math.round(performance.now() - beganMs)} ms`)
    windows.push({ page, name, assertClean })
  }
  for (const { page, name } of windows) {
    await inState(page, 'number 1000', 'final').waitFor()
    const work = await workOf(page)
    t.diagnostic(`${name}: ${JSON.stringify(work)}`)
    assert.ok((await drawn(page)) <= 200, 'only rows near to what is seen are in the page')
    // A row is made once, and the rows that move past the window at most once more.
    assert.ok(work.rows <= 2 * texts.length, `${work.rows} rows were made`)
    assert.ok(work.changes <= 20 * texts.length, `${work.changes} changes of the document`)
    assert.ok(work.writes <= texts.length / 2, `${work.writes} writes to the disk`)
  }

  const [ada, grace] = windows
  assert.ok(ada && grace)
  const before = await workOf(grace.page)
  await say(ada.page, 'Ada', 'one more')
  await inState(grace.page, 'one more', 'final').waitFor()
  const one = await workOf(grace.page)
  assert.ok(one.rows - before.rows <= 3, `one message made ${one.rows - before.rows} rows`)
  assert.ok(
    one.changes - before.changes <= 200,
    `one message changed the document ${one.changes - before.changes} times`,
  )

  // Up to the first message, however often rows are drawn on the way; what is read stays while others talk.
  await until('the first message is drawn', async () => {
    await grace.page.evaluate(`document.querySelector('.messages').scrollTop = 0`)
    return (await message(grace.page, 'number 1').count()) === 1
  })
  assert.ok((await drawn(grace.page)) <= 200)
  const topOf = `document.querySelector('[data-message="number 1"]').getBoundingClientRect().top`
  const top = await grace.page.evaluate(topOf)
  await say(ada.page, 'Ada', 'while she reads')
  await grace.page.locator('.messages[data-rows="1002"]').waitFor()
  assert.equal(await grace.page.evaluate(topOf), top)
  assert.equal(await message(grace.page, 'while she reads').count(), 0)
  await grace.page.getByRole('button', { name: 'Newest messages' }).click()
  await inState(grace.page, 'while she reads', 'final').waitFor()
  for (const { assertClean } of windows) assertClean()
  await linus.stop()
})
