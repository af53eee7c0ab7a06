import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { RecordId } from '../../../../src/ledger/core/identity.ts'
import type { LedgerRecord, OnAbandoned } from '../../../../src/ledger/core/record.ts'
import { visibleStates } from '../../../../src/ledger/core/record.ts'
import type { Decision, Grant, Request, Settlement } from '../../../../src/ledger/core/request.ts'
import { transition } from '../../../../src/ledger/core/transition.ts'
import { hasLapsed } from '../../../../src/ledger/core/transition-parts.ts'
import type { Applied, AppliedDecision } from '../../../../src/ledger/store/port.ts'
import type { PostgresStore } from '../../../../src/ledger/stores/postgres/index.ts'
import { CALL, claimOf, openStore, TRANSACTION, testPostgres } from '../../../support/stores/postgres/store.ts'

/** The statements must decide what the pure rules decide, on whatever history: compared step by step with a plain map. */

type Move = { readonly batch: readonly Draw[]; readonly advanceMs: number; readonly inTransaction: boolean }

/** A request as a few small numbers, made into a real one when its moment has come and earlier grants are known. */
interface Draw {
  readonly key: number
  readonly kind: Request['kind']
  readonly dice: number
  readonly grant: number
}

const kinds = ['claim', 'claim', 'claim', 'settle', 'settle', 'settle', 'start', 'renew', 'attach', 'release'] as const
const rareKinds = ['reconcile', 'probe', 'resolve', 'forget', 'unique'] as const
const KEYS = 4

const draws: fc.Arbitrary<Draw> = fc.record({
  key: fc.nat(KEYS - 1),
  kind: fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...kinds) },
    { weight: 1, arbitrary: fc.constantFrom(...rareKinds) },
  ),
  dice: fc.nat(1_000_000),
  /** Counted from the newest: an old one is a late loser's. */
  grant: fc.constantFrom(0, 0, 0, 1, 2),
})

const moves: fc.Arbitrary<Move[]> = fc.array(
  fc.record({
    batch: fc.uniqueArray(draws, { selector: ({ key }) => key, minLength: 1, maxLength: KEYS }),
    advanceMs: fc.constantFrom(0, 0, 0, 1, 900, 5_000, 7_000, 40_000, 90_000),
    inTransaction: fc.boolean(),
  }),
  { minLength: 10, maxLength: 30, size: 'max' },
)

const abandoned: readonly OnAbandoned[] = ['rerun', 'hold', 'probe']
const pick = <T>(from: readonly T[], dice: number): T => from[dice % from.length] as T

function settlement(dice: number): Settlement {
  const kept = pick(['response', 'outcome', 'not_stored'] as const, dice)
  const outcome = { kept, data: pick(['"a"', '{"b":"\\\\\\"{,}"}', null], dice >> 2) }
  switch (pick(['succeeded', 'failed_terminal', 'failed_retryable', 'unknown', 'succeeded'] as const, dice >> 4)) {
    case 'succeeded':
      return { state: 'succeeded', outcome }
    case 'failed_terminal':
      return { state: 'failed_terminal', outcome }
    case 'failed_retryable':
      return { state: 'failed_retryable', outcome, retryAfterMs: (dice >> 6) % 3_000 }
    case 'unknown':
      return { state: 'unknown', reason: pick([null, '"why"'], dice >> 6) }
  }
}

/** Now and then what a holder says does not fit what the store knows. (Fence and claim id name the attempt, and vouch for the rest.) */
function forged(grant: Grant | undefined, dice: number): Grant | undefined {
  if (grant === undefined || dice % 4 > 0) return grant
  const lies: readonly Partial<Grant>[] = [
    { claimId: 'another claim' },
    // Beyond all that the sequence will give: as from before a reset, when the clock was wrong.
    { fence: grant.fence + 1_000_000_000 },
    { policy: { ...grant.policy, retainMs: 1 } },
    { pointer: { type: 'order', id: 'elsewhere' } },
  ]
  return { ...grant, ...pick(lies, dice >> 2) }
}

function requestOf({ key, kind, dice, grant }: Draw, grants: readonly Grant[], step: number): Request | null {
  const onAbandoned = pick(abandoned, dice)
  const window = pick([{}, {}, { retainFrom: 'claimed' }] as const, dice >> 5)
  const policy = { ...window, onAbandoned, retainMs: 30_000, refuseMs: pick([0, 20_000], dice >> 3), unknownMs: 60_000 }
  const fingerprints: [string] = [pick([...Array(12).fill('v1:1:same'), 'v1:1:other', 'v1:2:newer'], dice >> 1)]
  const claimId = pick([`claim ${step}.${key}`, `again ${key}`], dice >> 2)
  const fresh = claimOf(`key ${key}`, { policy, fingerprints, claimId, leaseMs: 2_000 })
  const { id, identity } = fresh
  const held = forged(pick(grants.filter((each) => each.id === id).toReversed(), grant), dice >> 8)
  switch (kind) {
    case 'claim':
      return { ...fresh, start: dice % 4 > 0, wait: dice % 3 === 0 }
    case 'release':
      return { kind, id, identity, claimId: held?.claimId ?? claimId, fingerprint: fingerprints[0], policy }
    case 'reconcile':
      return { kind, id }
    case 'probe':
      return { kind, id, claimId, leaseMs: 2_000 }
    case 'resolve': {
      const outcome = { kept: 'response', data: '"resolved"' } as const
      const to = pick([{ kind: 'succeeded', outcome }, { kind: 'failed', outcome }, { kind: 'rerun' }] as const, dice)
      const later = { kind: 'cannot_tell', probeAfterMs: 100 } as const
      return { kind, id, by: 'me', ifFence: null, probeFence: null, to: dice % 5 === 0 ? later : to }
    }
    case 'forget': {
      const ifFence = held !== undefined && dice % 2 === 0 ? held.fence : null
      return { kind, id, by: 'me', ifFence, onlyRunning: dice % 3 === 0 }
    }
    case 'unique':
      return { kind, id, identity, claimId, owner: pick(['one', 'two'], dice) }
    case 'start':
    case 'renew':
    case 'attach':
    case 'settle':
      return held === undefined ? null : holderRequest(kind, held, dice, step)
  }
}

type HolderKind = 'start' | 'renew' | 'attach' | 'settle'

function holderRequest(kind: HolderKind, held: Grant, dice: number, step: number): Request {
  const { id, claimId, fence } = held
  const pointer = { type: 'order', id: `${step}` }
  switch (kind) {
    case 'start':
    case 'renew':
      return { kind, id, claimId, fence, leaseMs: 2_000 }
    case 'attach':
      return { kind, id, claimId, fence, pointer }
    case 'settle':
      return { kind, id, grant: held, to: settlement(dice), pointer: dice % 4 === 0 ? pointer : null }
  }
}

/**
 * The rules over a map, at the moment that the store itself chose: its clock is real, and its sequence gives up fences
 * that were not granted. So the time is taken from the answer, and the fence from whatever the answer granted.
 */
function createModel() {
  const records = new Map<RecordId, LedgerRecord>()
  return {
    records,
    decide: (request: Request, answer: AppliedDecision): AppliedDecision => {
      const before = records.get(request.id) ?? null
      const { now } = answer
      const fence = grantedFence(answer, before)
      if (fence !== null) assert.ok(fence > (before?.fence ?? 0), 'fences grow')
      const { record, decision } = transition(before, request, { now, fence: fence ?? -1 })
      if (record !== null) records.set(record.id, record)
      return { record, decision, now }
    },
  }
}

/** The fence that the store used up for this answer, or null. */
function grantedFence({ decision, record }: AppliedDecision, before: LedgerRecord | null): number | null {
  if (decision.kind === 'probe_granted') {
    const held = before?.state === 'unknown' ? before.probe?.fence : undefined
    return decision.fence === held ? null : decision.fence
  }
  if (decision.kind === 'applied' && decision.recordLost) return null
  return record !== null && record.fence !== before?.fence ? record.fence : null
}

type Model = ReturnType<typeof createModel>

async function applyAll(
  store: PostgresStore,
  requests: readonly Request[],
  inTransaction: boolean,
): Promise<Applied[]> {
  if (!inTransaction) return [...(await store.claims.apply(requests, CALL))]
  return await store.transactions.run(async (session) => {
    const answers: Applied[] = []
    for (const request of requests) answers.push(await session.apply(request))
    return answers
  }, TRANSACTION)
}

async function compareStores(store: PostgresStore, model: Model): Promise<void> {
  const ids = Array.from({ length: KEYS }, (_, key) => claimOf(`key ${key}`).id)
  const { records } = await store.claims.read(ids, CALL)
  assert.deepEqual(
    records,
    ids.map((id) => model.records.get(id) ?? null),
  )
  const all = [...model.records.values()]
  const newest = (a: LedgerRecord, b: LedgerRecord) => b.fence - a.fence
  const { rows: unknowns } = await store.queries.unknowns({ limit: 10, cursor: null }, CALL)
  assert.deepEqual(unknowns, all.filter(({ state }) => state === 'unknown').toSorted(newest))
  const [kept] = await store.sql.query('SELECT count(*) AS unknowns FROM onceonly_unknowns')
  assert.deepEqual(kept, { unknowns: String(unknowns.length) })
  const running = all.filter((record) => record.state === 'in_progress').toSorted((a, b) => a.fence - b.fence)
  const lapsed = await store.queries.lapsed(0, 10, CALL)
  assert.deepEqual(
    lapsed.rows,
    running.filter((record) => hasLapsed(record, lapsed.now)),
  )
  // It may stay behind: a claim with a smaller fence may still be under way.
  assert.ok(lapsed.next <= (running[0]?.fence ?? Number.POSITIVE_INFINITY))
  await compareLists(store, all)
}

async function compareLists(store: PostgresStore, all: readonly LedgerRecord[]): Promise<void> {
  const listed = await store.queries.list({}, { limit: 10, cursor: null }, CALL)
  const counted = await store.queries.count({}, CALL)
  const now = await store.clock.now(CALL)
  const ended = (record: LedgerRecord) => 'expiresAt' in record && record.expiresAt <= now
  // A record that ended between the questions and our look at the clock may have been seen or not.
  if (all.some((record) => 'expiresAt' in record && Math.abs(record.expiresAt - now) < 1_000)) return
  const visible = all.filter((record) => record.state !== 'vacant' && !ended(record))
  assert.deepEqual(
    listed.rows.map(({ record }) => record),
    visible.toSorted((a, b) => b.fence - a.fence),
  )
  const expected = visibleStates.map((state) => [state, visible.filter((record) => record.state === state).length])
  assert.deepEqual(counted, Object.fromEntries(expected))
}

function decisionsOf(answers: readonly Applied[]): AppliedDecision[] {
  return answers.map((answer) => {
    if ('error' in answer) throw answer.error
    return answer
  })
}

function leasesOf(decisions: readonly { readonly decision: Decision }[]): Grant[] {
  return decisions.flatMap(({ decision }) => ('lease' in decision ? [decision.lease] : []))
}

async function play(store: PostgresStore, history: readonly Move[]): Promise<void> {
  const model = createModel()
  const grants: Grant[] = []
  for (const [step, { batch, advanceMs, inTransaction }] of history.entries()) {
    if (advanceMs > 0) await store.clock.advance(advanceMs, CALL)
    const drawn = batch.map((draw) => requestOf(draw, grants, step)).filter((request) => request !== null)
    const requests = drawn.toSorted((a, b) => (a.id < b.id ? -1 : 1))
    const answers = decisionsOf(await applyAll(store, requests, inTransaction))
    const expected = requests.map((request, index) => model.decide(request, answers[index] as AppliedDecision))
    assert.deepEqual(answers, expected, `step ${step}: ${JSON.stringify(requests)}`)
    grants.push(...leasesOf(expected))
    await compareStores(store, model)
  }
}

testPostgres('apply decides exactly as the pure rules do, on random histories', async (t) => {
  const store = await openStore(t)
  const emptied = ['onceonly_records', 'onceonly_unknowns'].join(', ')
  await store.clock.now(CALL)
  const numRuns = Number(process.env['ONCEONLY_TEST_RUNS'] ?? 40)
  await fc.assert(
    fc.asyncProperty(moves, async (history) => {
      await store.sql.query(`TRUNCATE ${emptied}`)
      await play(store, history)
    }),
    { numRuns },
  )
})
