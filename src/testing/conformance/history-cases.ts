import type { LedgerRecord } from '../../ledger/core/record.ts'
import { goneAtOf } from '../../ledger/core/record.ts'
import type { Grant, Request } from '../../ledger/core/request.ts'
import { transition } from '../../ledger/core/transition.ts'
import type { Store } from '../../ledger/store/port.ts'
import { applyAll } from '../apply-all.ts'
import type { Random } from '../random.ts'
import { createRandom } from '../random.ts'
import type { Case } from './case.ts'
import { check, same } from './check.ts'
import {
  advance,
  CALL,
  claim,
  forget,
  kept,
  LEASE_MS,
  later,
  newClaimId,
  OTHER_PAYLOAD,
  PAYLOAD,
  policies,
  RETAIN_MS,
  refusal,
  release,
  resolve,
  settle,
  success,
  unknown,
} from './requests.ts'

/** Random histories, compared step by step with the pure machine. */
export function historyCases(count: number): readonly Case[] {
  return Array.from({ length: count }, (_, seed) => ({
    name: `a random history does what the pure machine does (seed ${seed})`,
    run: ({ store }) => history(store, createRandom(seed + 1)),
  }))
}

const STEPS = 60
const KEYS = ['a', 'b', 'c']
/** Times that matter: nothing, a heartbeat, a lapsed lease, the end of retention, the end of an unknown. */
const PAUSES_MS = [0, 0, 0, 1_000, LEASE_MS, LEASE_MS + 5_000, RETAIN_MS, 10 * 60_000]

interface Model {
  readonly records: Map<string, LedgerRecord | null>
  /** Every grant ever given: stale ones are used as often as living ones. */
  readonly grants: Grant[]
  readonly claimIds: string[]
  fence: number
}

async function history(store: Store, random: Random): Promise<void> {
  const model: Model = { records: new Map(), grants: [], claimIds: [], fence: 0 }
  for (let step = 0; step < STEPS; step++) {
    const pauseMs = random.pick(PAUSES_MS)
    if (pauseMs > 0) await advance(store, pauseMs)
    if (random.chance(0.05)) await sweep(store, model)
    const requests = distinct(Array.from({ length: 1 + random.below(3) }, () => randomRequest(random, model)))
    const answers = await applyAll(store, requests, CALL)
    // Within one batch the store may number its grants in any order.
    const floor = model.fence
    for (const [index, request] of requests.entries()) {
      const applied = answers[index]
      check(applied !== undefined && 'decision' in applied, `step ${step}: ${request.kind} has an answer`)
      compare(model, request, applied, floor, `step ${step}: ${request.kind}`)
    }
  }
}

function compare(
  model: Model,
  request: Request,
  applied: { decision: unknown; record: LedgerRecord | null; now: number },
  floor: number,
  text: string,
): void {
  const before = model.records.get(request.id) ?? null
  const taken = newFence(before, applied.record)
  check(taken === null || taken > floor, `${text}: fences only grow (${taken} after ${floor})`)
  const fence = taken ?? model.fence + 1
  const expected = transition(before, request, { now: applied.now, fence })
  same(applied.decision, expected.decision, `${text}: the decision`)
  same(applied.record, expected.record, `${text}: the record`)
  model.records.set(request.id, expected.record)
  model.fence = Math.max(model.fence, newFence(before, expected.record) ?? 0)
  const { decision } = expected
  if ('lease' in decision) model.grants.push(decision.lease)
}

/** The fence that the step took from the store, if it took one. */
function newFence(before: LedgerRecord | null, after: LedgerRecord | null): number | null {
  if (after === null || after === before) return null
  if (after.fence !== before?.fence) return after.fence
  if (after.state === 'unknown' && after.probe !== null) {
    const known = before?.state === 'unknown' ? before.probe?.fence : undefined
    return after.probe.fence === known ? null : after.probe.fence
  }
  return null
}

/** Only one mutation per record and batch, in one order. */
function distinct(requests: readonly Request[]): Request[] {
  const byId = new Map(requests.map((request) => [request.id, request]))
  return [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
}

function randomRequest(random: Random, model: Model): Request {
  const grant = model.grants.length > 0 && random.chance(0.6) ? random.pick(model.grants.slice(-6)) : null
  if (grant === null || random.chance(0.25)) return randomClaim(random, model)
  const { id, claimId, fence } = grant
  switch (random.below(10)) {
    case 0:
      return { kind: 'renew', id, claimId, fence, leaseMs: LEASE_MS }
    case 1:
      return { kind: 'start', id, claimId, fence, leaseMs: LEASE_MS }
    case 2:
      return { kind: 'attach', id, claimId, fence, pointer: { type: 'thing', id: `${random.below(3)}` } }
    case 3:
      return release(grant)
    case 4:
      return { kind: 'reconcile', id }
    case 5:
      return { kind: 'probe', id, claimId: newClaimId(), leaseMs: LEASE_MS }
    case 6:
      return randomResolve(random, model, grant)
    case 7:
      return forget(id, { onlyRunning: random.chance(0.5), ifFence: random.chance(0.3) ? fence : null })
    default:
      return settle(grant, random.pick(settlements))
  }
}

function randomClaim(random: Random, model: Model): Request {
  const claimId = model.claimIds.length > 0 && random.chance(0.2) ? random.pick(model.claimIds) : newClaimId()
  model.claimIds.push(claimId)
  return claim(random.pick(KEYS), {
    claimId,
    fingerprints: random.chance(0.15) ? [OTHER_PAYLOAD] : random.chance(0.1) ? ['v1:2:new', PAYLOAD] : [PAYLOAD],
    start: random.chance(0.8),
    wait: random.chance(0.3),
    policy: policies[random.pick(['hold', 'rerun', 'probe', 'refuse', 'window'] as const)],
  })
}

function randomResolve(random: Random, model: Model, { id, fence }: Grant): Request {
  const record = model.records.get(id)
  const probeFence =
    record?.state === 'unknown' && record.probe !== null && random.chance(0.5) ? record.probe.fence : null
  const to = random.pick([
    { kind: 'succeeded', outcome: kept('1') },
    { kind: 'failed', outcome: kept('{}') },
    { kind: 'rerun' },
    { kind: 'cannot_tell', probeAfterMs: 5_000 },
  ] as const)
  return resolve(id, to, { probeFence, ifFence: random.chance(0.3) ? fence : null })
}

const settlements = [
  success(),
  success('"other"'),
  refusal(),
  later(0),
  later(20_000),
  unknown,
  { ...success(), note: { calls: 2, provider: 'post' } },
  { ...later(0), note: { calls: 0 } },
  { ...unknown, note: { reference: 'r-1' } },
] as const

/** What a tombstone must still know: it may lose its outcome, its history, its pointer and its facts. */
function small(record: LedgerRecord | null, now: number): unknown {
  const expired = record !== null && 'expiresAt' in record && record.expiresAt <= now
  return expired ? { ...record, outcome: null, history: [], pointer: null, facts: null } : record
}

/** Removes only what is past its end, and changes nothing that can still be replayed. */
async function sweep(store: Store, model: Model): Promise<void> {
  await store.upkeep.sweep(null, 1_000, CALL)
  const ids = [...model.records.keys()]
  if (ids.length === 0) return
  const { records, now } = await store.claims.read(ids, CALL)
  for (const [index, id] of ids.entries()) {
    const was = model.records.get(id) ?? null
    const is = records[index] ?? null
    const goneAt = was === null ? null : goneAtOf(was)
    if (is === null)
      check(was === null || (goneAt !== null && goneAt <= now), `the sweep removed a living record: ${was?.state}`)
    else same(small(is, now), small(was, now), 'the sweep changes no living record')
    model.records.set(id, is)
  }
}
