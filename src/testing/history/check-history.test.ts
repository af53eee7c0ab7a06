import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Grant, Request } from '../../ledger/core/request.ts'
import type { Store } from '../../ledger/store/port.ts'
import { memoryStore } from '../../ledger/stores/memory/index.ts'
import type { Random } from '../random.ts'
import { createRandom } from '../random.ts'
import { checkHistory } from './check-history.ts'
import type { HistoryEvent } from './event.ts'

const CALL = { timeoutMs: 1_000 }
const identity = { tenant: 't', caller: 'c', operation: 'o', key: 'k' }
const policy = { onAbandoned: 'rerun', retainMs: 60_000, refuseMs: 0, unknownMs: 60_000 } as const

function claimOf(claimId: string): Request {
  const fingerprints: [string] = ['v1:1:a']
  const rest = { fingerprints, leaseMs: 1_000, start: true, wait: false, policy }
  return { kind: 'claim', id: 'r', identity, claimId, ...rest }
}

/** What a process might ask next, given the grants that it has heard of. */
function nextRequest(random: Random, grants: readonly Grant[], count: number): Request {
  const grant = grants.length === 0 ? null : random.pick(grants)
  if (grant === null || random.chance(0.4))
    return claimOf(random.chance(0.2) && count > 0 ? `c${count - 1}` : `c${count}`)
  const { claimId, fence } = grant
  if (random.chance(0.3)) return { kind: 'renew', id: 'r', claimId, fence, leaseMs: 1_000 }
  if (random.chance(0.2)) return { kind: 'release', id: 'r', identity, claimId, fingerprint: 'v1:1:a', policy }
  if (random.chance(0.2)) return { kind: 'reconcile', id: 'r' }
  const outcome = { kept: 'response', data: claimId } as const
  const to = random.chance(0.5)
    ? ({ state: 'succeeded', outcome } as const)
    : ({ state: 'failed_retryable', outcome, retryAfterMs: 0 } as const)
  return { kind: 'settle', id: 'r', grant, to, pointer: null }
}

/** A true history: calls take effect one after the other, but each was under way for a while before and after. */
async function trueHistory(seed: number, store: Store): Promise<HistoryEvent[]> {
  const random = createRandom(seed)
  const events: HistoryEvent[] = []
  const grants: Grant[] = []
  for (let step = 0; step < 60; step++) {
    if (random.chance(0.1)) await store.clock.advance(random.pick([900, 7_000, 61_000]), CALL)
    const request = nextRequest(random, grants, step)
    const applied = await store.claims.apply(request, CALL)
    assert.ok(applied !== undefined && 'decision' in applied)
    const { decision, now } = applied
    if ('lease' in decision) grants.push(decision.lease)
    const at = step * 10
    const times = { startedAt: at - random.below(30), endedAt: at + random.below(30) }
    // Some answers are lost; a later answer may still show the fence.
    const result = random.chance(0.1) ? ({ kind: 'info' } as const) : ({ kind: 'ok', decision, now } as const)
    events.push({ process: `p${random.below(3)}`, request, ...times, result })
    if (random.chance(0.05)) {
      events.push({ process: 'p3', request: claimOf(`lost${step}`), ...times, result: { kind: 'info' } })
      events.push({ process: 'p4', request: claimOf(`failed${step}`), ...times, result: { kind: 'fail' } })
    }
  }
  return events
}

test('every true history fits, whatever was lost and however the calls overlapped', async () => {
  for (let seed = 0; seed < 200; seed++) {
    const events = await trueHistory(seed, memoryStore({ testClock: true }))
    const verdict = checkHistory(events)
    assert.ok(verdict.fits, `seed ${seed}: ${verdict.fits ? '' : verdict.problems[0]?.why}`)
    assert.equal(verdict.events, events.length)
  }
})

/** A short history by hand: claims and settles of one identity, each given the time of its call. */
function by(store: Store) {
  let clock = 0
  return async (request: Request): Promise<HistoryEvent & { result: { kind: 'ok' } }> => {
    const startedAt = (clock += 10)
    const applied = await store.claims.apply(request, CALL)
    assert.ok(applied !== undefined && 'decision' in applied)
    const result = { kind: 'ok', decision: applied.decision, now: applied.now } as const
    return { process: 'p', request, startedAt, endedAt: startedAt + 5, result }
  }
}

function grantIn(event: HistoryEvent): Grant {
  assert.ok(event.result.kind === 'ok' && event.result.decision.kind === 'first_attempt')
  return event.result.decision.lease
}

test('two winners do not fit', async () => {
  const one = await by(memoryStore())(claimOf('c1'))
  const two = await by(memoryStore())(claimOf('c2'))
  assert.equal(checkHistory([one, { ...two, startedAt: 100, endedAt: 105 }]).fits, false)
  assert.equal(checkHistory([one, { ...two, startedAt: one.startedAt, endedAt: one.endedAt }]).fits, false)
})

test('a grant after a success does not fit, unless it may have come first', async () => {
  const call = by(memoryStore())
  const claimed = await call(claimOf('c1'))
  const done = { state: 'succeeded', outcome: { kept: 'response', data: 'x' } } as const
  const settled = await call({ kind: 'settle', id: 'r', grant: grantIn(claimed), to: done, pointer: null })
  const replayed = await call(claimOf('c2'))
  assert.equal(checkHistory([claimed, settled, replayed]).fits, true)
  // A replay before the success was recorded cannot have its outcome.
  assert.equal(checkHistory([claimed, settled, { ...replayed, startedAt: 12, endedAt: 14 }]).fits, false)
  const rival = { kind: 'in_progress', attempt: 1, retryAfterMs: 500, verified: true } as const
  const rivalEvent = { ...replayed, result: { kind: 'ok', decision: rival, now: claimed.result.now } as const }
  assert.equal(checkHistory([claimed, settled, rivalEvent]).fits, false)
  assert.equal(checkHistory([claimed, settled, { ...rivalEvent, startedAt: 16 }]).fits, true)
})

test('a fence that goes back does not fit', async () => {
  const store = memoryStore({ testClock: true })
  const call = by(store)
  const first = await call(claimOf('c1'))
  await store.clock.advance(60_000, CALL)
  const second = await call(claimOf('c2'))
  assert.equal(checkHistory([first, second]).fits, true)
  const { decision } = second.result
  assert.ok(decision.kind === 'reclaimed')
  const lower = { ...decision, lease: { ...decision.lease, fence: grantIn(first).fence - 1 } }
  const verdict = checkHistory([first, { ...second, result: { ...second.result, decision: lower } }])
  assert.ok(!verdict.fits)
  assert.equal(verdict.problems[0]?.why, 'impossible')
  assert.equal(verdict.problems[0]?.explained.length, 1)
})

test('an unanswered claim explains a running attempt, a failed one does not', async () => {
  const store = memoryStore()
  const call = by(store)
  const lost = await call(claimOf('c1'))
  const twin = await call(claimOf('c2'))
  assert.equal(checkHistory([{ ...lost, result: { kind: 'info' } }, twin]).fits, true)
  assert.equal(checkHistory([{ ...lost, result: { kind: 'fail' } }, twin]).fits, false)
  // It cannot explain anything that had ended before it began.
  assert.equal(checkHistory([{ ...lost, startedAt: 100, result: { kind: 'info' } }, twin]).fits, false)
})

test('identities are judged one by one, and too many orders are not called impossible', async () => {
  const one = await by(memoryStore())(claimOf('c1'))
  const two = await by(memoryStore())(claimOf('c2'))
  const elsewhere = { ...two, request: { ...two.request, id: 'other' } }
  const verdict = checkHistory([one, elsewhere])
  assert.deepEqual([verdict.fits, verdict.identities], [true, 2])
  const undecided = checkHistory([one, two], { tries: 1 })
  assert.equal(!undecided.fits && undecided.problems[0]?.why, 'undecided')
})
