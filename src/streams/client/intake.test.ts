import assert from 'node:assert/strict'
import { test } from 'node:test'
import { streamBounds } from '../bounds.ts'
import type { Delivered } from '../protocol/protocol.ts'
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

function open() {
  const shown: unknown[] = []
  const intake = createIntake({
    receiver: { message: ({ body }) => void shown.push(body) },
    mode: 'at-least-once',
    storage: createMemoryStorage(),
    restored: { logs: {}, ordered: 0 },
    runtime: createClientRuntime(),
    replay: false,
    bounds: streamBounds(),
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
