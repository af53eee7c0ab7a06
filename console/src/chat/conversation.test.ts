import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Entry, MessageIdentity, Position } from 'onceonly/stream'
import { createConversation } from './conversation.ts'
import type { Thread } from './threads.ts'

const identity = (client: string, cseq: number): MessageIdentity => ({ client, epoch: 1, cseq })

function entry(
  who: MessageIdentity,
  log: string,
  n: number,
  text: string,
  { replyTo = null, seen = {} }: { replyTo?: MessageIdentity | null; seen?: Position } = {},
): Entry {
  return { ...who, log, n, seen, after: null, replyTo, body: { by: 'N', text }, acceptedAtMs: 0 }
}

function outline(threads: readonly Thread[]): unknown {
  return threads.map(({ message, replies }) => (replies.length === 0 ? message.text : [message.text, outline(replies)]))
}

test('two replies at once stand under their parent, and take the final order when it arrives', () => {
  const question = identity('ada.1', 1)
  const conversation = createConversation()
  conversation.shown(entry(question, 'eu.1', 1, 'lunch?'))
  conversation.shown(entry(identity('bob.1', 1), 'us.1', 1, 'yes', { replyTo: question, seen: { 'eu.1': 1 } }))
  conversation.shown(entry(identity('eve.1', 1), 'eu.1', 2, 'no', { replyTo: question, seen: { 'eu.1': 1 } }))
  assert.deepEqual(outline(conversation.threads()), [['lunch?', ['yes', 'no']]])
  const [thread] = conversation.threads()
  assert.deepEqual(
    thread?.replies.map(({ concurrentWith }) => concurrentWith.map(({ text }) => text)),
    [['no'], ['yes']],
  )

  conversation.ordered(question, 1)
  conversation.ordered(identity('eve.1', 1), 2)
  assert.deepEqual(outline(conversation.threads()), [['lunch?', ['no', 'yes']]])
  conversation.ordered(identity('bob.1', 1), 3)
  assert.equal(conversation.message(identity('bob.1', 1))?.state, 'final')
})

test('a message is pending, accepted and final, and is there once however often it arrives', () => {
  const conversation = createConversation()
  const own = identity('ada.1', 1)
  conversation.sent(own, { name: 'Ada', text: 'hello', quote: null }, null)
  assert.equal(conversation.message(own)?.state, 'pending')
  conversation.accepted(own)
  conversation.shown(entry(own, 'eu.1', 1, 'hello'))
  conversation.shown(entry(own, 'eu.1', 1, 'hello'))
  assert.equal(conversation.message(own)?.state, 'accepted')
  conversation.ordered(own, 1)
  conversation.accepted(own)
  assert.equal(conversation.message(own)?.state, 'final')
  assert.equal(conversation.size, 1)
})

test('an order that comes before its message is not lost, and an orphan is shown', () => {
  const conversation = createConversation()
  const late = identity('bob.1', 7)
  conversation.ordered(late, 4)
  conversation.shown(entry(late, 'us.1', 7, 'late', { replyTo: identity('ada.1', 1) }))
  assert.deepEqual(outline(conversation.threads()), ['late'])
  assert.equal(conversation.message(late)?.final, 4)
})

test('an identity that is taken again takes along what is pending, and nothing else', () => {
  const conversation = createConversation()
  const [before, after] = [
    { client: 'ada.1', epoch: 1 },
    { client: 'ada.2', epoch: 1 },
  ]
  conversation.sent({ ...before, cseq: 1 }, { name: 'Ada', text: 'one', quote: null }, null)
  conversation.accepted({ ...before, cseq: 1 })
  conversation.sent({ ...before, cseq: 2 }, { name: 'Ada', text: 'two', quote: null }, { ...before, cseq: 1 })
  conversation.renamed(before, after)
  assert.equal(conversation.message({ ...after, cseq: 1 })?.text, 'two')
  assert.deepEqual(outline(conversation.threads()), [['one', ['two']]])
})
