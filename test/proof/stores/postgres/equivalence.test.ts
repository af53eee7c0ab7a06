import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { RecordId } from '../../../../src/ledger/core/identity.ts'
import type { LedgerRecord } from '../../../../src/ledger/core/record.ts'
import { visibleStates } from '../../../../src/ledger/core/record.ts'
import type { Decision, Grant, Request } from '../../../../src/ledger/core/request.ts'
import { transition } from '../../../../src/ledger/core/transition.ts'
import { hasLapsed } from '../../../../src/ledger/core/transition-parts.ts'
import type { Applied, AppliedDecision } from '../../../../src/ledger/store/port.ts'
import type { PostgresStore } from '../../../../src/ledger/stores/postgres/index.ts'
import { type HistoryForm, histories, type Move, requestOf } from '../../../support/stores/histories.ts'
import { CALL, claimOf, flush, openStore, TRANSACTION, testPostgres } from '../../../support/stores/postgres/store.ts'

/** The statements must decide what the pure rules decide, on whatever history: compared step by step with a plain map. */

const form: HistoryForm = {
  keys: 4,
  longest: 30,
  onAbandoned: ['rerun', 'hold', 'probe'],
  outcomes: ['"a"', '{"b":"\\\\\\"{,}"}', null],
  // Fence and claim id name the attempt, and vouch for the rest.
  lies: (grant) => [
    { claimId: 'another claim' },
    // Beyond all that the sequence will give: as from before a reset, when the clock was wrong.
    { fence: grant.fence + 1_000_000_000 },
    { policy: { ...grant.policy, retainMs: 1 } },
    { pointer: { type: 'order', id: 'elsewhere' } },
  ],
  claimOf,
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

async function applyBatch(
  store: PostgresStore,
  requests: readonly Request[],
  inTransaction: boolean,
): Promise<Applied[]> {
  if (!inTransaction) return [...(await flush(store, requests, CALL))]
  return await store.transactions.run(async (session) => {
    const answers: Applied[] = []
    for (const request of requests) answers.push(await session.apply(request))
    return answers
  }, TRANSACTION)
}

async function compareStores(store: PostgresStore, model: Model): Promise<void> {
  const ids = Array.from({ length: form.keys }, (_, key) => claimOf(`key ${key}`).id)
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
    const drawn = batch.map((draw) => requestOf(form, draw, grants, step)).filter((request) => request !== null)
    const requests = drawn.toSorted((a, b) => (a.id < b.id ? -1 : 1))
    const answers = decisionsOf(await applyBatch(store, requests, inTransaction))
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
    fc.asyncProperty(histories(form), async (history) => {
      await store.sql.query(`TRUNCATE ${emptied}`)
      await play(store, history)
    }),
    { numRuns },
  )
})
