import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createListeners } from '../runtime/listeners.ts'
import { createTestRuntime } from '../runtime/test-runtime.ts'
import { isOnceError, OnceError } from './core/errors.ts'
import { limits, MINUTE, SECOND } from './core/limits.ts'
import type { Grant, HolderDecision, RenewRequest, Request } from './core/request.ts'
import type { Declared } from './declared.ts'
import { Attempt, createHeart } from './effect-context.ts'
import type { LedgerEvent } from './events.ts'
import type { Requests } from './requests.ts'

const LEASE_MS = 30 * SECOND
const op = { name: 'op', leaseMs: LEASE_MS, maxRunMs: 15 * MINUTE } as Declared
const applied: HolderDecision = { kind: 'applied', recordLost: false }
const lost: HolderDecision = { kind: 'lease_lost', state: 'succeeded', conflict: false }

function grantOf(id: string): Grant {
  const identity = { tenant: 't', caller: 'c', operation: 'op', key: id }
  return { id, identity, claimId: `claim ${id}`, fence: 7 } as Grant
}

/** A heart whose beats are answered by hand, or at once. */
function scene(answer: 'at once' | 'by hand' = 'at once') {
  const runtime = createTestRuntime()
  const startedMs = runtime.monotonicMs()
  const beats: { at: number; request: RenewRequest; timeoutMs: number; end(how: HolderDecision | OnceError): void }[] =
    []
  const apply = (request: Request, timeoutMs = 0) =>
    new Promise((resolve, reject) => {
      assert.equal(request.kind, 'renew')
      const end = (how: HolderDecision | OnceError) => {
        if (how instanceof OnceError) reject(how)
        else resolve({ decision: how, record: null, now: 0 })
      }
      beats.push({ at: runtime.monotonicMs() - startedMs, request: request as RenewRequest, timeoutMs, end })
      if (answer === 'at once') end(applied)
    })
  const events = createListeners<LedgerEvent>()
  const heard: LedgerEvent['kind'][] = []
  events.on(({ kind }) => heard.push(kind))
  const heart = createHeart({ apply, drain: () => Promise.resolve() } as unknown as Requests, runtime, events)
  const hold = (id = 'a', sentAt = runtime.monotonicMs()) => new Attempt(heart, op, grantOf(id), sentAt)
  return { runtime, beats, heard, heart, hold }
}

const isOver = (error: unknown) => isOnceError(error, 'lease_over')

test('a lease is renewed after a third of it, and again after each renewal', async () => {
  const { runtime, beats, hold } = scene()
  const lease = hold()
  await runtime.advance(35 * SECOND)
  // To the precision of a tick.
  assert.deepEqual(
    beats.map(({ at }) => Math.round(at / SECOND)),
    [10, 20, 30],
  )
  const { request } = beats[0] as (typeof beats)[0]
  assert.deepEqual(request, { kind: 'renew', id: 'a', claimId: 'claim a', fence: 7, leaseMs: LEASE_MS })
  lease.check()
})

test('most effects end before their first beat, and leave no timer behind', async () => {
  const { runtime, beats, hold } = scene()
  hold().lease.letGo()
  await runtime.advance(1 * SECOND)
  assert.equal(beats.length, 0)
  assert.deepEqual(runtime.pending(), { foreground: 0, background: 0 })
})

test('many leases share one timer, which keeps no process alive', async () => {
  const { runtime, beats, hold } = scene()
  for (let n = 0; n < 100; n++) hold(`r${n}`)
  assert.deepEqual(runtime.pending(), { foreground: 0, background: 1 })
  await runtime.advance(11 * SECOND)
  assert.equal(beats.length, 100)
  assert.deepEqual(runtime.pending(), { foreground: 0, background: 1 })
})

test('the deadline counts from before the claim was sent, and is noticed without any timer', () => {
  const { runtime, hold } = scene('by hand')
  const young = hold('a', runtime.monotonicMs() - LEASE_MS + 1)
  young.check()
  const old = hold('b', runtime.monotonicMs() - LEASE_MS)
  assert.throws(() => old.check(), isOver)
  assert.equal(old.signal().aborted, true)
})

test('the deadline of a renewed lease counts from before its renewal was sent', async () => {
  const { runtime, beats, hold, heard } = scene('by hand')
  const lease = hold()
  const signal = lease.signal()
  await runtime.advance(12 * SECOND)
  assert.equal(beats.length, 1)
  await runtime.advance(8 * SECOND)
  // Sent at 10 s, answered at 20 s: good until 40 s, not until 50 s.
  beats[0]?.end(applied)
  await runtime.advance(19 * SECOND)
  lease.check()
  assert.equal(signal.aborted, false)
  await runtime.advance(2 * SECOND)
  assert.throws(() => lease.check(), isOver)
  assert.equal(signal.aborted, true)
  assert.ok(isOver(signal.reason))
  assert.deepEqual(heard, ['lease_over'])
})

test('one beat at a time, and its time is what is left of the lease', async () => {
  const { runtime, beats, hold } = scene('by hand')
  hold()
  await runtime.advance(29 * SECOND)
  assert.equal(beats.length, 1)
  assert.ok(Math.abs((beats[0]?.timeoutMs ?? 0) - 20 * SECOND) <= 250)
})

test('a beat that failed is sent again by the next tick, until the lease is over', async () => {
  const { runtime, beats, hold, heard } = scene('by hand')
  const lease = hold()
  for (let second = 0; second < 32; second++) {
    await runtime.advance(SECOND)
    for (const beat of beats) beat.end(new OnceError('store_unavailable', 'Away.'))
  }
  assert.ok(beats.length > 10, `${beats.length} beats`)
  assert.throws(() => lease.check(), isOver)
  assert.deepEqual(heard, ['lease_over'])
  const sent = beats.length
  await runtime.advance(MINUTE)
  assert.equal(beats.length, sent)
  assert.deepEqual(runtime.pending(), { foreground: 0, background: 0 })
})

test('a lease that was lost ends at once, with a reason', async () => {
  const { runtime, beats, hold, heard } = scene('by hand')
  const lease = hold()
  await runtime.advance(11 * SECOND)
  beats[0]?.end(lost)
  await runtime.settle()
  assert.throws(
    () => lease.check(),
    (error) => isOnceError(error, 'lease_lost') && error.details['state'] === 'succeeded',
  )
  // A signal created only now has the same reason.
  assert.ok(isOnceError(lease.signal().reason, 'lease_lost'))
  assert.deepEqual(heard, ['lease_lost'])
})

test('a beat that was overtaken by our own settle is no loss', async () => {
  const { runtime, beats, hold, heard } = scene('by hand')
  const lease = hold()
  const signal = lease.signal()
  await runtime.advance(11 * SECOND)
  // The outcome was recorded while the beat waited behind it; the store then says that nothing is in progress.
  lease.lease.letGo()
  beats[0]?.end(lost)
  await runtime.advance(SECOND)
  assert.deepEqual(heard, [])
  assert.equal(signal.aborted, false)
})

test('no heartbeat past the longest run', async () => {
  const { runtime, beats, hold, heard } = scene()
  hold()
  await runtime.advance(20 * MINUTE)
  const last = beats.at(-1)?.at ?? 0
  assert.ok(last < op.maxRunMs && last > op.maxRunMs - LEASE_MS, `${last}`)
  assert.deepEqual(heard, ['lease_over'])
})

test('a heart that was stopped beats no more', async () => {
  const { runtime, beats, heart, hold } = scene()
  hold()
  heart.stop()
  await runtime.advance(MINUTE)
  assert.equal(beats.length, 0)
  assert.deepEqual(runtime.pending(), { foreground: 0, background: 0 })
  assert.ok(limits.heartbeatShare < 1 / 2)
})
