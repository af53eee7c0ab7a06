import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Entry, MessageIdentity } from 'onceonly/stream'
import { type Conversation, createConversation } from './conversation.ts'

const identity = (client: string, cseq: number): MessageIdentity => ({ client, epoch: 1, cseq })

function entry(
  n: number,
  { log = 'eu.1', replyTo = null }: { log?: string; replyTo?: MessageIdentity | null } = {},
): Entry {
  const who = identity(`${log}-author`, n)
  const body = { by: 'Ada', text: `${log} ${n}`, ...(replyTo === null ? {} : { quote: { by: 'Bob', text: 'asked' } }) }
  return { ...who, log, n, seen: {}, after: null, replyTo, body, acceptedAtMs: 0 }
}

/** Texts and gaps from top to bottom. */
function outline(conversation: Conversation): readonly unknown[] {
  const { rows, gapAtEnd } = conversation.arranged()
  const lines = rows.flatMap(({ gap, message }) => (gap === null ? [message.text] : [gap, message.text]))
  return [...lines, ...(gapAtEnd === null ? [] : [gapAtEnd])].map((line) =>
    typeof line === 'string' ? line : `(${(line as { kind: string }).kind} ${(line as { messages: number }).messages})`,
  )
}

test('who was away for too long sees how many messages are missing, and where', () => {
  const conversation = createConversation()
  for (const n of [1, 2]) conversation.shown(entry(n))
  conversation.shown(entry(1, { log: 'us.1' }))
  conversation.sent(identity('me', 1), { name: 'Me', text: 'pending', quote: null }, null)
  conversation.reset({ 'eu.1': 5, 'us.1': 2 })
  assert.deepEqual(outline(conversation), ['eu.1 1', 'eu.1 2', 'us.1 1', '(missing 4)', 'pending'])
  conversation.shown(entry(6))
  assert.deepEqual(outline(conversation), ['eu.1 1', 'eu.1 2', 'us.1 1', '(missing 4)', 'pending', 'eu.1 6'])
  // The final order brings what came later before what only this window has.
  for (const [n, place] of [
    [1, 1],
    [2, 2],
    [6, 8],
  ] as const)
    conversation.ordered(identity('eu.1-author', n), place)
  conversation.ordered(identity('us.1-author', 1), 3)
  assert.deepEqual(outline(conversation), ['eu.1 1', 'eu.1 2', 'us.1 1', '(missing 4)', 'eu.1 6', 'pending'])
})

test('a reset that loses nothing shows nothing, and what still comes is not missing', () => {
  const conversation = createConversation()
  conversation.shown(entry(1))
  conversation.reset({ 'eu.1': 1 })
  assert.deepEqual(outline(conversation), ['eu.1 1'])
  conversation.reset({ 'eu.1': 3 })
  conversation.copied({ log: 'eu.1', n: 2 })
  conversation.shown(entry(3))
  assert.deepEqual(outline(conversation), ['eu.1 1', 'eu.1 3'])
})

test('a room that is older than what it keeps says so at the top, and a reply quotes what is gone', () => {
  const conversation = createConversation()
  conversation.reset({ 'eu.1': 40 })
  assert.deepEqual(outline(conversation), ['(before 40)'])
  conversation.shown(entry(41, { replyTo: identity('eu.1-author', 7) }))
  conversation.shown(entry(42))
  assert.deepEqual(outline(conversation), ['(before 40)', 'eu.1 41', 'eu.1 42'])
  const [orphan] = conversation.threads()
  assert.deepEqual([orphan?.parent, orphan?.message.quote], [null, { name: 'Bob', text: 'asked' }])
})

test('a window that stays open for days lets go of its oldest messages, and of none that is not sent', () => {
  const conversation = createConversation(1_000)
  conversation.sent(identity('me', 1), { name: 'Me', text: 'pending', quote: null }, null)
  for (let n = 1; n <= 3_000; n += 1) conversation.shown(entry(n))
  assert.ok(conversation.size <= 1_500)
  assert.equal(conversation.message(identity('me', 1))?.state, 'pending')
  const [first] = outline(conversation)
  assert.match(String(first), /^\(dropped \d+\)$/)
})

test('a chain of three thousand replies is indented a little, and every reply names its parent', () => {
  const conversation = createConversation()
  for (let n = 1; n <= 3_000; n += 1) {
    conversation.shown(entry(n, n === 1 ? {} : { replyTo: identity('eu.1-author', n - 1) }))
  }
  const { threads, rows } = conversation.arranged()
  assert.equal(rows.length, 3_000)
  for (const [at, { message, parent }] of rows.entries()) {
    assert.equal(message.text, `eu.1 ${at + 1}`)
    assert.equal(parent?.text, at === 0 ? undefined : `eu.1 ${at}`)
  }
  let depth = 0
  for (let below = threads; below.length > 0; below = below[0]?.replies ?? []) depth += 1
  assert.ok(depth <= 6)
})

test('of what was pending under a forgotten identity the first are doubtful, and replies among the rest stay replies', () => {
  const conversation = createConversation()
  const [before, after] = [
    { client: 'me', epoch: 1 },
    { client: 'me', epoch: 2 },
  ]
  for (const cseq of [1, 2]) {
    conversation.sent({ ...before, cseq }, { name: 'Me', text: `${cseq}`, quote: null }, null)
  }
  conversation.sent({ ...before, cseq: 3 }, { name: 'Me', text: '3', quote: null }, { ...before, cseq: 2 })
  conversation.renamed(before, after, [{ name: 'Me', text: '1', quote: null }])
  assert.equal(conversation.message({ ...before, cseq: 1 })?.state, 'doubtful')
  assert.equal(conversation.message({ ...after, cseq: 1 })?.text, '2')
  assert.deepEqual(conversation.message({ ...after, cseq: 2 })?.replyTo, 'me/2/1')
})

test('a reply to what the room does not have is not sent, and the rest is sent', () => {
  const conversation = createConversation()
  const target = identity('gone', 7)
  conversation.sent(identity('me', 1), { name: 'Me', text: 'first', quote: null }, null)
  conversation.sent(identity('me', 2), { name: 'Me', text: 'reply', quote: null }, target)
  conversation.refused(target)
  conversation.renamed({ client: 'me', epoch: 1 }, { client: 'me', epoch: 2 })
  assert.equal(conversation.message(identity('me', 2))?.state, 'refused')
  assert.equal(conversation.message({ client: 'me', epoch: 2, cseq: 1 })?.text, 'first')
  assert.equal(conversation.size, 2)
})
