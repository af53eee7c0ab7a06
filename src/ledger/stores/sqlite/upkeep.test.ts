import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyAll } from '../../../testing/apply-all.ts'
import { limits } from '../../core/limits.ts'
import type { Grant } from '../../core/request.ts'
import type { SqliteStore } from './index.ts'
import { CALL, claimOf, freshStore, leaseOf, POLICY, settleOf } from './test-store.ts'

async function settleMany(store: SqliteStore, count: number, refuseMs: number, name: string): Promise<Grant[]> {
  const policy = { ...POLICY, refuseMs }
  const requests = Array.from({ length: count }, (_, index) => claimOf(`${name} ${index}`, { policy }))
  const grants = (await applyAll(store, requests, CALL)).map(leaseOf)
  await applyAll(
    store,
    grants.map((grant) => settleOf(grant)),
    CALL,
  )
  return grants
}

/** A step has fewer rows on a machine that is slow just then; on this clock none ever takes any time. */
const atOnce = { internal: { time: { monotonicMs: () => 1 } } }

async function sweepAll(store: SqliteStore, limit: number): Promise<{ removed: number; steps: number }> {
  let removed = 0
  let steps = 0
  for (let cursor: string | null = null; ; ) {
    const step = await store.upkeep.sweep(cursor, limit, CALL)
    removed += step.removed
    steps++
    cursor = step.cursor
    if (cursor === null) return { removed, steps }
  }
}

test('the sweep removes what is past its end and leaves the rest, in bounded steps', async (t) => {
  const store = freshStore(t, atOnce)
  await settleMany(store, 200, 0, 'old')
  assert.deepEqual(await sweepAll(store, 70), { removed: 0, steps: 3 })
  await store.clock.advance(POLICY.retainMs, CALL)
  const young = await settleMany(store, 10, 0, 'young')
  assert.deepEqual(await sweepAll(store, 70), { removed: 200, steps: 4 })
  const rows = await store.sql.query('SELECT count(*) AS rows FROM onceonly_records')
  assert.deepEqual(rows, [{ rows: young.length }])
})

test('past replay only a small tombstone stays, and it still refuses the key', async (t) => {
  const store = freshStore(t, atOnce)
  const [grant] = (await settleMany(store, 1, 60_000, 'refused')) as [Grant]
  await store.clock.advance(POLICY.retainMs, CALL)
  assert.deepEqual(await sweepAll(store, 100), { removed: 0, steps: 1 })
  const { records } = await store.claims.read([grant.id], CALL)
  assert.ok(records[0]?.state === 'succeeded')
  assert.deepEqual(records[0].outcome, { kept: 'response', data: null })
  const again = await store.claims.apply(claimOf('refused 0'), CALL)
  assert.ok(again !== undefined && 'decision' in again && again.decision.kind === 'key_expired')
  await store.clock.advance(60_000, CALL)
  assert.deepEqual(await sweepAll(store, 100), { removed: 1, steps: 1 })
})

test('a claim that comes between looking and removing keeps its record', async (t) => {
  const store = freshStore(t)
  await settleMany(store, 100, 0, 'old')
  await store.clock.advance(POLICY.retainMs, CALL)
  const sweeping = store.upkeep.sweep(null, 1_000, CALL)
  const requests = Array.from({ length: 100 }, (_, index) => claimOf(`old ${index}`))
  const answers = await applyAll(store, requests, CALL)
  for (const answer of answers) assert.ok('decision' in answer && answer.decision.kind === 'first_attempt')
  await sweeping
  const { records } = await store.claims.read(
    requests.map(({ id }) => id),
    CALL,
  )
  for (const record of records) assert.equal(record?.state, 'in_progress')
})

test('counts of callers add up in buckets, and old buckets are swept', async (t) => {
  const store = freshStore(t)
  const counts = { claims: 2, replays: 3, conflicts: 4, inProgress: 5 }
  const web = { tenant: 'acme', caller: 'web', operation: 'order.create', ...counts }
  const job = {
    tenant: 'acme',
    caller: 'job',
    operation: 'order.create',
    claims: 100,
    replays: 0,
    conflicts: 0,
    inProgress: 0,
  }
  await store.upkeep.tally({ records: [], callers: [web, job] }, CALL)
  await store.upkeep.tally({ records: [], callers: [web] }, CALL)
  const start = await store.clock.now(CALL)
  const twice = { ...web, claims: 4, replays: 6, conflicts: 8, inProgress: 10 }
  assert.deepEqual(await store.queries.busiest(start, 10, CALL), [job, twice])
  assert.deepEqual(await store.queries.busiest(start, 1, CALL), [job])
  await store.clock.advance(2 * limits.tallyBucketMs, CALL)
  assert.deepEqual(await store.queries.busiest(start + 2 * limits.tallyBucketMs, 10, CALL), [])
  await store.clock.advance(limits.tallyKeepMs, CALL)
  await sweepAll(store, 10)
  assert.deepEqual(await store.queries.busiest(0, 10, CALL), [])
})

/** A clock by which everything that is asked twice took a second. */
function slowTime() {
  let nowMs = 0
  return { monotonicMs: () => (nowMs += 1_000) }
}

test('a step that keeps the writer for long is followed by shorter ones', async (t) => {
  const store = freshStore(t, { internal: { time: slowTime() } })
  await settleMany(store, 2_100, 0, 'old')
  await store.clock.advance(POLICY.retainMs, CALL)
  const looks: number[] = []
  for (let cursor: string | null = null; ; ) {
    const step = await store.upkeep.sweep(cursor, 4_000, CALL)
    looks.push(step.looked)
    cursor = step.cursor
    if (cursor === null) break
  }
  assert.deepEqual(looks, [1_024, 512, 256, 256, 52])
})

test('an id does not lead to the record that took the place of its own', async (t) => {
  const store = freshStore(t, atOnce)
  const gone = await settleMany(store, 10, 0, 'gone')
  await store.sql.query('DELETE FROM onceonly_records')
  const young = await settleMany(store, 10, 0, 'young')
  const ids = gone.map(({ id }) => id)
  assert.deepEqual((await store.claims.read(ids, CALL)).records, Array(10).fill(null))
  for (const id of ids) assert.equal((await store.queries.get(id, CALL)).view, null)
  await applyAll(
    store,
    gone.map((grant) => settleOf(grant)),
    CALL,
  )
  const { records } = await store.claims.read(
    young.map(({ id }) => id),
    CALL,
  )
  assert.deepEqual(
    records.map((record) => record?.identity.key),
    young.map(({ identity }) => identity.key),
  )
})

test('an id whose record was removed is free, and ids that lead nowhere are removed in time', async (t) => {
  const store = freshStore(t, atOnce)
  const ids = async () => Number((await store.sql.query<{ n: number }>('SELECT count(*) AS n FROM onceonly_ids'))[0]?.n)
  await settleMany(store, 100, 0, 'old')
  await store.clock.advance(POLICY.retainMs, CALL)
  assert.deepEqual(await sweepAll(store, 30), { removed: 100, steps: 4 })
  assert.ok((await ids()) < 100, `${await ids()} ids`)
  // The places of removed records are taken again: an old id must not lead to another record.
  const young = await settleMany(store, 50, 0, 'young')
  const again = await settleMany(store, 50, 0, 'old')
  const { records } = await store.claims.read(
    [...young, ...again].map(({ id }) => id),
    CALL,
  )
  assert.deepEqual(
    records.map((record) => record?.identity.key),
    [...young, ...again].map(({ identity }) => identity.key),
  )
  for (let round = 0; round < 5; round++) {
    await settleMany(store, 100, 0, `round ${round}`)
    await store.clock.advance(POLICY.retainMs, CALL)
    await sweepAll(store, 1_000)
  }
  assert.deepEqual(await store.sql.query('SELECT count(*) AS rows FROM onceonly_records'), [{ rows: 0 }])
  assert.ok((await ids()) <= 100, `${await ids()} ids`)
})
