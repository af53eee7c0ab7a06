import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import type { RecordId } from '../../../../src/ledger/core/identity.ts'
import { limits } from '../../../../src/ledger/core/limits.ts'
import type { LedgerRecord } from '../../../../src/ledger/core/record.ts'
import { visibleStates } from '../../../../src/ledger/core/record.ts'
import type { Grant, Request } from '../../../../src/ledger/core/request.ts'
import type { Step } from '../../../../src/ledger/core/transition.ts'
import { transition } from '../../../../src/ledger/core/transition.ts'
import { hasLapsed } from '../../../../src/ledger/core/transition-parts.ts'
import type { SqliteStore } from '../../../../src/ledger/stores/sqlite/index.ts'
import { sqliteStore } from '../../../../src/ledger/stores/sqlite/index.ts'
import { CALL, claimOf, TRANSACTION } from '../../../../src/ledger/stores/sqlite/test-store.ts'
import { applyAll } from '../../../../src/testing/apply-all.ts'
import { type HistoryForm, histories, type Move, requestOf } from '../../../support/stores/histories.ts'

/** The statements must decide what the pure rules decide, on whatever history: compared step by step with a plain map. */

const form: HistoryForm = {
  keys: 3,
  longest: 40,
  onAbandoned: ['rerun', 'hold', 'probe', 'hold_attached'],
  outcomes: ['"a"', '"b"', null],
  lies: (grant) => [
    { claimId: 'another claim' },
    { fence: grant.fence + 1 },
    { attempt: grant.attempt + 1 },
    { fingerprint: 'v1:1:other' },
    { policy: { ...grant.policy, retainMs: 1 } },
    { pointer: { type: 'order', id: 'elsewhere' } },
    { claimedAt: grant.claimedAt - 1 },
    { incarnation: grant.incarnation - 1 },
  ],
  claimOf,
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

async function applyBatch(store: SqliteStore, requests: readonly Request[], inTransaction: boolean) {
  if (!inTransaction) return await applyAll(store, requests, CALL)
  return await store.transactions.run(async (session) => {
    const answers = []
    for (const request of requests) answers.push(await session.apply(request))
    return answers
  }, TRANSACTION)
}

async function compareStores(store: SqliteStore, model: Model, now: number): Promise<void> {
  const ids = Array.from({ length: form.keys }, (_, key) => claimOf(`key ${key}`).id)
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
      const drawn = batch.map((draw) => requestOf(form, draw, grants, step)).filter((request) => request !== null)
      // In the order in which a group commit decides them, so that both give the same fences.
      const requests = drawn.toSorted((a, b) => (a.id < b.id ? -1 : 1))
      const answers = await applyBatch(store, requests, inTransaction)
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
      fc.asyncProperty(histories(form), (history) => play(history, join(folder, `${++run}.db`))),
      { numRuns: 300 },
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  assert.ok(limits.leaseGraceMs === 5_000, 'the waiting times above are chosen around this grace')
})
