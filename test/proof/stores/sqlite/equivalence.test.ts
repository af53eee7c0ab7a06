import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import type { RecordId } from '../../../../src/ledger/core/identity.ts'
import { limits } from '../../../../src/ledger/core/limits.ts'
import type { LedgerRecord, OnAbandoned, Pointer } from '../../../../src/ledger/core/record.ts'
import { visibleStates } from '../../../../src/ledger/core/record.ts'
import type { Grant, Request, Settlement } from '../../../../src/ledger/core/request.ts'
import type { Step } from '../../../../src/ledger/core/transition.ts'
import { transition } from '../../../../src/ledger/core/transition.ts'
import { hasLapsed } from '../../../../src/ledger/core/transition-parts.ts'
import type { SqliteStore } from '../../../../src/ledger/stores/sqlite/index.ts'
import { sqliteStore } from '../../../../src/ledger/stores/sqlite/index.ts'
import { CALL, claimOf, TRANSACTION } from '../../../../src/ledger/stores/sqlite/test-store.ts'

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
const KEYS = 3

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
  { minLength: 10, maxLength: 40, size: 'max' },
)

const abandoned: readonly OnAbandoned[] = ['rerun', 'hold', 'probe', 'hold_attached']
const pick = <T>(from: readonly T[], dice: number): T => from[dice % from.length] as T

function settlement(dice: number): Settlement {
  const outcome = {
    kept: pick(['response', 'outcome', 'not_stored'] as const, dice),
    data: pick(['"a"', '"b"', null], dice >> 2),
  }
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

/** Now and then what a holder says does not fit what the store knows. */
function forged(grant: Grant | undefined, dice: number): Grant | undefined {
  if (grant === undefined || dice % 4 > 0) return grant
  const lies: readonly Partial<Grant>[] = [
    { claimId: 'another claim' },
    { fence: grant.fence + 1 },
    { attempt: grant.attempt + 1 },
    { fingerprint: 'v1:1:other' },
    { policy: { ...grant.policy, retainMs: 1 } },
    { pointer: { type: 'order', id: 'elsewhere' } },
    { claimedAt: grant.claimedAt - 1 },
    { incarnation: grant.incarnation - 1 },
  ]
  return { ...grant, ...pick(lies, dice >> 2) }
}

function requestOf({ key, kind, dice, grant }: Draw, grants: readonly Grant[], step: number): Request | null {
  const onAbandoned = pick(abandoned, dice)
  const window = pick([{}, {}, { retainFrom: 'claimed' }] as const, dice >> 5)
  const policy = {
    onAbandoned,
    retainMs: 30_000,
    ...window,
    refuseMs: pick([0, 20_000], dice >> 3),
    unknownMs: 60_000,
  }
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
      return {
        kind,
        id,
        by: 'me',
        ifFence: null,
        probeFence: null,
        to: dice % 5 === 0 ? { kind: 'cannot_tell', probeAfterMs: 100 } : to,
      }
    }
    case 'forget':
      return {
        kind,
        id,
        by: 'me',
        ifFence: held !== undefined && dice % 2 === 0 ? held.fence : null,
        onlyRunning: dice % 3 === 0,
      }
    case 'unique':
      return { kind, id, identity, claimId, owner: pick(['one', 'two'], dice) }
    case 'start':
    case 'renew':
    case 'attach':
    case 'settle':
      return held === undefined ? null : holderRequest(kind, held, dice, { type: 'order', id: `${step}` })
  }
}

function holderRequest(
  kind: 'start' | 'renew' | 'attach' | 'settle',
  held: Grant,
  dice: number,
  pointer: Pointer,
): Request {
  const { id, claimId, fence } = held
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

/** The rules over a map, with the store's way of counting fences: one is used up only when it was granted. */
function createModel() {
  const records = new Map<RecordId, LedgerRecord>()
  let lastFence = 0
  return {
    records,
    lastFence: () => lastFence,
    decide: (request: Request, now: number) => {
      const before = records.get(request.id) ?? null
      const { record, decision }: Step = transition(before, request, { now, fence: lastFence + 1 })
      if (record !== null && record !== before) {
        records.set(record.id, record)
        lastFence = Math.max(lastFence, record.fence, (record.state === 'unknown' ? record.probe?.fence : 0) ?? 0)
      }
      return { record, decision, now }
    },
  }
}

type Model = ReturnType<typeof createModel>

async function applyAll(store: SqliteStore, requests: readonly Request[], inTransaction: boolean) {
  if (!inTransaction) return await store.claims.apply(requests, CALL)
  return await store.transactions.run(async (session) => {
    const answers = []
    for (const request of requests) answers.push(await session.apply(request))
    return answers
  }, TRANSACTION)
}

async function compareStores(store: SqliteStore, model: Model, now: number): Promise<void> {
  const ids = Array.from({ length: KEYS }, (_, key) => claimOf(`key ${key}`).id)
  const read = await store.claims.read(ids, CALL)
  assert.deepEqual(read, { now, records: ids.map((id) => model.records.get(id) ?? null) })
  const all = [...model.records.values()]
  const { rows: unknowns } = await store.queries.unknowns({ limit: 10, cursor: null }, CALL)
  const byId = (a: LedgerRecord, b: LedgerRecord) => (a.id < b.id ? -1 : 1)
  assert.deepEqual(unknowns, all.filter(({ state }) => state === 'unknown').toSorted(byId))
  const [kept] = await store.sql.query('SELECT count(*) AS unknowns FROM onceonly_unknowns')
  assert.deepEqual(kept, { unknowns: unknowns.length })
  const running = all.filter((record) => record.state === 'in_progress').toSorted((a, b) => a.fence - b.fence)
  const lapsed = await store.queries.lapsed(0, 10, CALL)
  assert.deepEqual(
    lapsed.rows,
    running.filter((record) => hasLapsed(record, now)),
  )
  assert.equal(lapsed.next, running[0]?.fence ?? lapsed.next)
  const visible = all.filter(
    (record) => record.state !== 'vacant' && !('expiresAt' in record && record.expiresAt <= now),
  )
  const listed = await store.queries.list({}, { limit: 10, cursor: null }, CALL)
  const records = listed.rows.map(({ record }) => record)
  assert.deepEqual(records.toSorted(byId), visible.toSorted(byId))
  // A forged settle of a lost record may share its fence with another one, so only the order is checked here.
  assert.deepEqual(
    records.map(({ fence }) => fence),
    visible.map(({ fence }) => fence).toSorted((x, y) => y - x),
  )
  const expected = visibleStates.map((state) => [state, visible.filter((record) => record.state === state).length])
  assert.deepEqual(await store.queries.count({}, CALL), Object.fromEntries(expected))
}

async function play(history: readonly Move[], path: string): Promise<void> {
  const START = 1_700_000_000_000
  const time = { bootId: () => 'boot', monotonicMs: () => 0, wallMs: () => START }
  const store = sqliteStore(path, { testClock: true, internal: { time } })
  const model = createModel()
  const grants: Grant[] = []
  let now = START
  try {
    for (const [step, { batch, advanceMs, inTransaction }] of history.entries()) {
      await store.clock.advance(advanceMs, CALL)
      now += advanceMs
      const requests = batch.map((draw) => requestOf(draw, grants, step)).filter((request) => request !== null)
      const answers = await applyAll(store, requests, inTransaction)
      const expected = requests.map((request) => model.decide(request, now))
      assert.deepEqual(answers, expected, `step ${step}: ${JSON.stringify(requests)}`)
      for (const { decision } of expected) if ('lease' in decision) grants.push(decision.lease)
      await compareStores(store, model, now)
    }
  } finally {
    await store.stop()
  }
}

test('apply decides exactly as the pure rules do, on random histories', async () => {
  // In memory where there is such a folder: this test is about decisions, and the disk would take most of its time.
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'onceonly-sqlite-'))
  let run = 0
  try {
    await fc.assert(
      fc.asyncProperty(moves, (history) => play(history, join(folder, `${++run}.db`))),
      { numRuns: 300 },
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  assert.ok(limits.leaseGraceMs === 5_000, 'the waiting times above are chosen around this grace')
})
