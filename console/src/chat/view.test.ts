import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MessageIdentity } from 'onceonly/stream'
import { createConversation } from './conversation.ts'
import { looksSame, type RowProps } from './row-props.ts'
import { DRAWN_ROWS, further, newest, rangeOf, staying, type View } from './view.ts'

const author = { client: 'ada', epoch: 1 }
const identity = (cseq: number): MessageIdentity => ({ ...author, cseq })

function conversationOf(messages: number) {
  const conversation = createConversation()
  for (let cseq = 1; cseq <= messages; cseq += 1) {
    conversation.sent(identity(cseq), { name: 'Ada', text: `${cseq}`, quote: null }, null)
  }
  return conversation
}

test('a reader comes from the newest rows to the first and back, and never has more than a window of them', () => {
  const { rows } = conversationOf(1_000).arranged()
  assert.deepEqual(rangeOf(newest, rows), { from: 1_000 - DRAWN_ROWS, to: 1_000 })
  let view: View = newest
  const seen = new Set<number>()
  const look = () => {
    const { from, to } = rangeOf(view, rows)
    assert.ok(to - from <= DRAWN_ROWS)
    for (let at = from; at < to; at += 1) seen.add(at)
    return { from, to }
  }
  for (let steps = 0; look().from > 0; steps += 1) {
    assert.ok(steps < 100)
    view = further(view, rows, 'up')
  }
  assert.equal(seen.size, 1_000)
  for (let steps = 0; look().to < rows.length; steps += 1) {
    assert.ok(steps < 100)
    view = further(view, rows, 'down')
  }
})

test('who reads above keeps the same rows while others come; a row that is gone leaves the newest', () => {
  const conversation = conversationOf(500)
  const view = staying(newest, conversation.arranged().rows)
  const before = rangeOf(view, conversation.arranged().rows)
  for (let cseq = 501; cseq <= 600; cseq += 1) {
    conversation.sent(identity(cseq), { name: 'Ada', text: `${cseq}`, quote: null }, null)
  }
  assert.deepEqual(rangeOf(view, conversation.arranged().rows), before)
  assert.equal(rangeOf(newest, conversation.arranged().rows).to, 600)
  assert.equal(rangeOf({ kind: 'from', id: 'gone/1/1' }, conversation.arranged().rows).to, 600)
  assert.deepEqual(rangeOf(newest, []), { from: 0, to: 0 })
  assert.equal(further(newest, [], 'up').kind, 'newest')
})

test('of a thousand rows one message draws one again, and its final place once more', () => {
  const conversation = conversationOf(1_000)
  const propsOf = (): readonly RowProps[] =>
    conversation.arranged().rows.map(({ message }) => {
      const unchanged = { isOwn: true, quote: null, isParentGone: false, together: '' }
      return { message, ...unchanged, reply: () => undefined, settle: () => undefined }
    })
  const drawnAgain = (before: readonly RowProps[]) =>
    propsOf().filter((props, at) => {
      const known = before[at]
      return known === undefined || !looksSame(known, props)
    }).length
  let before = propsOf()
  assert.equal(drawnAgain(before), 0)
  conversation.sent(identity(1_001), { name: 'Ada', text: 'new', quote: null }, null)
  assert.equal(drawnAgain(before), 1)
  before = propsOf()
  conversation.accepted(identity(1_001))
  assert.equal(drawnAgain(before), 1)
  before = propsOf()
  conversation.ordered(identity(1), 1)
  assert.equal(drawnAgain(before), 1)
})
