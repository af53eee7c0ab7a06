import assert from 'node:assert/strict'
import { limits } from '../../../../src/ledger/core/limits.ts'
import { pagesOf } from '../../../../src/ledger/store/test-requests.ts'
import {
  byId,
  CALL,
  claimAll,
  claimIn,
  claimOf,
  DONE,
  flush,
  freshPool,
  freshSchema,
  kindOf,
  leaseOf,
  openStore,
  POLICY,
  settleOf,
  testPostgres,
} from '../../../support/stores/postgres/store.ts'

testPostgres('records are listed newest first, page by page, by whatever filter', async (t) => {
  const store = await openStore(t)
  for (const key of ['a', 'b', 'c', 'd', 'e']) {
    const grant = await claimIn(store, key)
    if (key !== 'c') await store.claims.apply(settleOf(grant), CALL)
  }
  assert.deepEqual((await pagesOf(store, {}, 2)).flat(), ['e', 'd', 'c', 'b', 'a'])
  assert.deepEqual((await pagesOf(store, { state: 'in_progress' }, 2)).flat(), ['c'])
  assert.deepEqual((await pagesOf(store, { tenant: 'acme', caller: 'web', key: 'b' }, 2)).flat(), ['b'])
  assert.deepEqual((await pagesOf(store, { operation: 'other' }, 2)).flat(), [])
  assert.deepEqual((await pagesOf(store, { since: (await store.clock.now(CALL)) + 1_000 }, 2)).flat(), [])
  const { succeeded, in_progress: running } = await store.queries.count({ operation: 'order.create' }, CALL)
  assert.deepEqual([succeeded, running], [4, 1])
})

testPostgres('a page reads a bounded number of rows, and returns the cursor of the next', async (t) => {
  const schema = freshSchema()
  const store = await openStore(t, { schema })
  await claimIn(store, 'needle')
  const pool = await freshPool(t)
  await pool.query(
    `INSERT INTO ${schema}.onceonly_records (id, tenant, caller, operation, key, fingerprint, state, claim_id, fence,
       incarnation, attempts, claimed_at, due_at, policy)
     SELECT gen_random_uuid(), 't', 'c', 'o', n::text, 'f', 1, 'c', nextval('${schema}.onceonly_fences'), 1, 1, 1, 1, 'hold:1:1:1'
     FROM generate_series(1, ${limits.scanRows + 10}) AS n`,
  )
  const first = await store.queries.list({ key: 'needle' }, { limit: 5, cursor: null }, CALL)
  assert.deepEqual([first.rows.length, first.cursor === null], [0, false])
  assert.deepEqual((await pagesOf(store, { key: 'needle' }, 5)).flat(), ['needle'])
  // And all of them lapsed long ago: they come in fence order, as many as were asked for.
  const { rows, next } = await store.queries.lapsed(0, 7, CALL)
  assert.equal(rows.length, 7)
  assert.ok(next <= (rows[0]?.fence ?? 0))
})

testPostgres('expired and vacant records are invisible at once, and swept later', async (t) => {
  const store = await openStore(t)
  const policy = { ...POLICY, retainMs: 1_000, refuseMs: 5_000 }
  const grant = await claimIn(store, 'refused', { policy })
  const { id, claimId, fence } = grant
  await store.claims.apply({ kind: 'attach', id, claimId, fence, pointer: { type: 'x', id: '1' } }, CALL)
  await store.claims.apply(settleOf(grant), CALL)
  const short = await claimIn(store, 'short', { policy: { ...policy, refuseMs: 0 } })
  await store.claims.apply(settleOf(short), CALL)
  const running = await claimIn(store, 'running')
  const vacant = await claimIn(store, 'vacant')
  await store.claims.apply({ kind: 'forget', id: vacant.id, by: 'me', ifFence: null, onlyRunning: false }, CALL)
  await store.clock.advance(2_000, CALL)
  assert.deepEqual((await pagesOf(store, {}, 10)).flat(), ['running'])
  assert.equal((await store.queries.get(id, CALL)).view, null)
  assert.equal((await store.queries.get(running.id, CALL)).view?.record.id, running.id)

  // Past replay only the fact that the key was used stays; past its end nothing.
  assert.deepEqual(await store.upkeep.sweep(null, 100, CALL), { cursor: null, looked: 4, removed: 1 })
  const { records } = await store.claims.read([id, short.id], CALL)
  assert.ok(records[0]?.state === 'succeeded' && records[0].outcome.data === null && records[0].pointer === null)
  assert.equal(records[1], null)
  assert.equal(kindOf(await store.claims.apply(claimOf('refused'), CALL)), 'key_expired')
  await store.clock.advance(10_000, CALL)
  assert.equal((await store.upkeep.sweep(null, 100, CALL)).removed, 1)
  await store.clock.advance(limits.vacantMs, CALL)
  assert.equal((await store.upkeep.sweep(null, 100, CALL)).removed, 1)
  assert.equal((await store.claims.read([running.id], CALL)).records[0]?.state, 'in_progress')
})

testPostgres('the sweep walks in bounded steps and skips what others hold', async (t) => {
  const schema = freshSchema()
  const store = await openStore(t, { schema })
  const grants = await claimAll(
    store,
    Array.from({ length: 25 }, (_, index) => `k${index}`),
  )
  await flush(
    store,
    grants.map((grant) => settleOf(grant)),
    CALL,
  )
  await store.clock.advance(POLICY.retainMs + 1, CALL)
  const pool = await freshPool(t)
  const locker = await pool.connect()
  await locker.query('BEGIN')
  await locker.query(`SELECT 1 FROM ${schema}.onceonly_records WHERE id = $1 FOR UPDATE`, [grants[3]?.id])
  let [removed, steps] = [0, 0]
  for (let cursor: string | null = null; ; ) {
    const swept = await store.upkeep.sweep(cursor, 10, CALL)
    removed += swept.removed
    steps += 1
    cursor = swept.cursor
    if (cursor === null) break
  }
  await locker.query('ROLLBACK')
  locker.release()
  assert.deepEqual([removed, steps], [24, 3])
  assert.equal((await store.upkeep.sweep(null, 10, CALL)).removed, 1)
})

testPostgres('lapsed leases are found once they lapsed, however long others run', async (t) => {
  const store = await openStore(t)
  const slow = await claimIn(store, 'slow', { leaseMs: 600_000 })
  const lost = await claimIn(store, 'lost', { leaseMs: 1_000 })
  assert.deepEqual((await store.queries.lapsed(0, 10, CALL)).rows, [])
  await store.clock.advance(60_000, CALL)
  const later = await claimIn(store, 'later', { leaseMs: 1_000 })
  const found = await store.queries.lapsed(0, 10, CALL)
  assert.deepEqual(
    found.rows.map(({ id }) => id),
    [lost.id],
  )
  assert.equal(found.next, slow.fence)
  await store.claims.apply({ kind: 'reconcile', id: lost.id }, CALL)
  await store.clock.advance(60_000, CALL)
  const again = await store.queries.lapsed(found.next, 10, CALL)
  assert.deepEqual(
    again.rows.map(({ id }) => id),
    [later.id],
  )
  await flush(store, byId([settleOf(slow), settleOf(later)]), CALL)
  assert.ok((await store.queries.lapsed(again.next, 10, CALL)).next > later.fence)
})

testPostgres('unknown outcomes are listed while they are unknown, newest first', async (t) => {
  const store = await openStore(t)
  const grants = []
  for (const key of ['a', 'b', 'c']) grants.push(await claimIn(store, key))
  for (const grant of grants) await store.claims.apply(settleOf(grant, { state: 'unknown', reason: null }), CALL)
  const first = await store.queries.unknowns({ limit: 2, cursor: null }, CALL)
  const rest = await store.queries.unknowns({ limit: 2, cursor: first.cursor }, CALL)
  assert.deepEqual(
    [first, rest].map(({ rows }) => rows.map(({ identity }) => identity.key)),
    [['c', 'b'], ['a']],
  )
  assert.equal(rest.cursor, null)
  const [late] = grants
  assert.ok(late !== undefined)
  await store.claims.apply(settleOf(late, DONE), CALL)
  const after = await store.queries.unknowns({ limit: 9, cursor: null }, CALL)
  assert.deepEqual(
    after.rows.map(({ identity }) => identity.key),
    ['c', 'b'],
  )
})

testPostgres('counts are added, to records and to callers, and begin anew with a new life', async (t) => {
  const store = await openStore(t)
  const grant = await claimIn(store, 'a')
  const caller = {
    tenant: 'acme',
    caller: 'web',
    operation: 'order.create',
    claims: 1,
    replays: 2,
    conflicts: 3,
    inProgress: 0,
  }
  const records = [
    { id: grant.id, replays: 2, conflicts: 1, inProgress: 0, lastAgoMs: 0 },
    { id: claimOf('absent').id, replays: 1, conflicts: 1, inProgress: 0, lastAgoMs: 0 },
  ]
  await store.upkeep.tally({ records, callers: [caller, { ...caller, caller: 'app', claims: 9 }] }, CALL)
  await store.upkeep.tally({ records, callers: [caller, caller] }, CALL)
  const { view } = await store.queries.get(grant.id, CALL)
  assert.deepEqual([view?.replays, view?.conflicts], [4, 2])
  const busiest = await store.queries.busiest(0, 10, CALL)
  assert.deepEqual(
    busiest.map(({ caller: name, claims }) => [name, claims]),
    [
      ['web', 3],
      ['app', 9],
    ],
  )
  assert.equal((await store.queries.busiest(0, 1, CALL)).length, 1)
  await store.claims.apply(settleOf(grant), CALL)
  await store.clock.advance(limits.tallyKeepMs + limits.tallyBucketMs, CALL)
  const again = leaseOf(await store.claims.apply(claimOf('a'), CALL))
  const fresh = await store.queries.get(again.id, CALL)
  assert.deepEqual([fresh.view?.replays, fresh.view?.conflicts], [0, 0])
  await store.upkeep.sweep(null, 100, CALL)
  assert.deepEqual(await store.queries.busiest(0, 10, CALL), [])
})
