import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type StreamBounds, streamBounds } from '../bounds.ts'
import type { Delivered } from '../protocol/protocol.ts'
import { publisherName } from '../protocol/published.ts'
import { createIntake } from './intake.ts'
import { createMemoryStorage } from './memory-storage.ts'
import { createClientRuntime } from './runtime.ts'

function entry(log: string, n: number, seen: Readonly<Record<string, number>> = {}): Delivered {
  const identity = { client: `author of ${log}`, epoch: 1, cseq: n }
  return {
    kind: 'message',
    log,
    n,
    ...identity,
    seen,
    after: null,
    replyTo: null,
    body: `${log} ${n}`,
    acceptedAtMs: 0,
  }
}

function open(bounds: Partial<StreamBounds> = {}) {
  const shown: unknown[] = []
  const intake = createIntake({
    receiver: { message: ({ body }) => void shown.push(body) },
    mode: 'at-least-once',
    storage: createMemoryStorage(),
    restored: { logs: {}, ordered: 0 },
    runtime: createClientRuntime(),
    replay: false,
    bounds: streamBounds(bounds),
    problem: (error) => assert.fail(String(error)),
  })
  const deliver = (...entries: readonly Delivered[]) => intake.deliver(entries, () => {})
  return { intake, deliver, shown }
}

test('an entry behind a gap is not taken: after a resume all of them come, in order and once', async () => {
  const { intake, deliver, shown } = open()
  assert.equal(deliver(entry('eu', 1)), 'taken')
  assert.equal(deliver(entry('eu', 3)), 'jump')
  assert.deepEqual(intake.position.logs, { eu: 1 })
  assert.equal(deliver(entry('eu', 1), entry('eu', 2), entry('eu', 3)), 'taken')
  await intake.idle()
  assert.deepEqual(shown, ['eu 1', 'eu 2', 'eu 3'])
})

test('an entry before its cause is not taken', async () => {
  const { intake, deliver, shown } = open()
  const reply = entry('us', 1, { eu: 1 })
  assert.equal(deliver(reply), 'jump')
  assert.equal(deliver(entry('eu', 1), reply), 'taken')
  await intake.idle()
  assert.deepEqual(shown, ['eu 1', 'us 1'])
})

const published = (log: string, n: number, id: string, client = publisherName('server', id)): Delivered => {
  return { ...entry(log, n), client, cseq: 1 } as Delivered
}

test('of messages of servers as many are recognised as the bound says, and every new one is shown', async () => {
  const { intake, deliver, shown } = open({ knownPublished: 3, knownSenders: 1 })
  for (let n = 1; n <= 5; n++) assert.equal(deliver(published('eu', n, `id-${n}`)), 'taken')
  // In another region the copies are the first: those of the last three are known.
  for (let n = 1; n <= 4; n++) deliver(published('us', n, `id-${6 - n}`))
  await intake.idle()
  assert.deepEqual(shown, ['eu 1', 'eu 2', 'eu 3', 'eu 4', 'eu 5', 'us 4'])
})

test('of people the one who was silent for longest is forgotten first, and a message more is shown', async () => {
  const { intake, deliver, shown } = open({ knownSenders: 2 })
  for (const [index, client] of ['ann', 'bob', 'ann', 'cid'].entries()) {
    const cseq = client === 'ann' && index > 0 ? 2 : 1
    deliver({ ...entry('eu', index + 1), client, cseq } as Delivered)
  }
  const copies = [
    ['cid', 1],
    ['ann', 2],
    ['ann', 1],
  ] as const
  for (const [index, [client, cseq]] of copies.entries())
    deliver({ ...entry('us', index + 1), client, cseq } as Delivered)
  assert.ok(intake.mayHaveCome({ client: 'eve', epoch: 1, cseq: 1 }), 'a no would not be certain any more')
  deliver({ ...entry('us', 4), client: 'bob', cseq: 1 } as Delivered)
  await intake.idle()
  assert.deepEqual(shown, ['eu 1', 'eu 2', 'eu 3', 'eu 4', 'us 4'])
})

test('a sender whose numbers have holes, after resets, is still shown', async () => {
  const { intake, deliver, shown } = open()
  const said = 3_000
  for (let n = 1; n <= said; n++) deliver({ ...entry('eu', n), client: 'ann', cseq: 2 * n } as Delivered)
  await intake.idle()
  assert.equal(shown.length, said)
})
