import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyAll } from '../../../testing/apply-all.ts'
import { isOnceError } from '../../core/errors.ts'
import { limits, MINUTE } from '../../core/limits.ts'
import type { Grant } from '../../core/request.ts'
import { pagesOf } from '../../store/test-requests.ts'
import type { SqliteStore } from './index.ts'
import { STEP_ROWS } from './tables.ts'
import { CALL, claimIn, claimOf, freshStore, leaseOf, POLICY, settleOf } from './test-store.ts'

async function claimMany(store: SqliteStore, names: readonly string[], leaseMs = 30_000): Promise<Grant[]> {
  const grants: Grant[] = []
  for (let from = 0; from < names.length; from += 500) {
    const requests = names.slice(from, from + 500).map((name) => claimOf(name, { leaseMs }))
    grants.push(...(await applyAll(store, requests, CALL)).map(leaseOf))
  }
  return grants
}

const numbered = (count: number, name = 'n') => Array.from({ length: count }, (_, index) => `${name} ${index}`)

test('the list is newest first, in pages, and looks past whole steps of rows that do not fit', async (t) => {
  const store = freshStore(t)
  const claimed = await claimMany(store, numbered(2 * STEP_ROWS + 10))
  const grants = claimed.toSorted((a, b) => a.fence - b.fence)
  const names = grants.map(({ identity }) => identity.key)
  await applyAll(store, [settleOf(grants[3] as Grant), settleOf(grants[STEP_ROWS + 5] as Grant)], CALL)
  const settled = await pagesOf(store, { state: 'succeeded' }, 10)
  assert.deepEqual(settled.flat(), [names[STEP_ROWS + 5], names[3]])
  const all = await pagesOf(store, { tenant: 'acme' }, 500)
  assert.deepEqual(all.flat(), names.toReversed())
  assert.deepEqual((await pagesOf(store, { tenant: 'acme' }, 3)).slice(0, 2), [
    names.slice(-3).toReversed(),
    names.slice(-6, -3).toReversed(),
  ])
  assert.deepEqual((await pagesOf(store, { key: 'n 7' }, 10)).flat(), ['n 7'])
  assert.deepEqual((await pagesOf(store, { caller: 'unknown' }, 10)).flat(), [])
})

test('counts go by state, and hide what is expired or vacant', async (t) => {
  const store = freshStore(t)
  const names = numbered(STEP_ROWS + 50)
  const grants = await claimMany(store, names)
  await applyAll(
    store,
    grants.slice(0, 30).map((grant) => settleOf(grant)),
    CALL,
  )
  const failed = { state: 'failed_retryable', outcome: { kept: 'outcome', data: null }, retryAfterMs: 0 } as const
  await applyAll(
    store,
    grants.slice(30, 40).map((grant) => settleOf(grant, failed)),
    CALL,
  )
  await applyAll(
    store,
    grants.slice(40, 45).map((grant) => settleOf(grant, { state: 'unknown', reason: null })),
    CALL,
  )
  const gone = grants
    .slice(45, 50)
    .map(({ id }) => ({ kind: 'forget', id, by: 'me', ifFence: null, onlyRunning: false }) as const)
  await applyAll(store, gone, CALL)
  const counts = { in_progress: STEP_ROWS, succeeded: 30, failed_terminal: 0, failed_retryable: 10, unknown: 5 }
  assert.deepEqual(await store.queries.count({}, CALL), counts)
  assert.equal((await store.queries.count({ state: 'unknown' }, CALL)).unknown, 5)
  await store.clock.advance(POLICY.retainMs, CALL)
  assert.deepEqual(await store.queries.count({}, CALL), { ...counts, succeeded: 0, failed_retryable: 0 })
  const now = await store.clock.now(CALL)
  assert.equal((await store.queries.count({ since: now }, CALL)).in_progress, 0)
})

test('lapsed leases are found behind a long-running one, and the low-water mark moves when it ends', async (t) => {
  const store = freshStore(t)
  const [long] = (await claimMany(store, ['long'], 60 * MINUTE)) as [Grant]
  const first = await claimMany(store, numbered(STEP_ROWS + 10, 'first'), 1_000)
  await applyAll(
    store,
    first.slice(0, -2).map((grant) => settleOf(grant)),
    CALL,
  )
  assert.deepEqual((await store.queries.lapsed(0, 10, CALL)).rows, [])
  await store.clock.advance(1_000 + limits.leaseGraceMs, CALL)
  const second = await claimMany(store, ['second'], 1_000)
  const found = await store.queries.lapsed(0, 10, CALL)
  assert.deepEqual(
    found.rows.map(({ id }) => id),
    first.slice(-2).map(({ id }) => id),
  )
  assert.equal(found.next, long.fence)
  assert.equal((await store.queries.lapsed(0, 1, CALL)).rows.length, 1)
  const reconcile = found.rows.map(({ id }) => ({ kind: 'reconcile', id }) as const)
  await applyAll(store, reconcile, CALL)
  await store.claims.apply(settleOf(long), CALL)
  const after = await store.queries.lapsed(found.next, 10, CALL)
  assert.deepEqual([after.rows, after.next], [[], second[0]?.fence])
  await applyAll(
    store,
    second.map((grant) => settleOf(grant)),
    CALL,
  )
  const end = await store.queries.lapsed(after.next, 10, CALL)
  assert.ok(end.next > (second[0] as Grant).fence)
  const third = await claimIn(store, 'third', { leaseMs: 1_000 })
  await store.clock.advance(1_000 + limits.leaseGraceMs, CALL)
  assert.deepEqual(
    (await store.queries.lapsed(end.next, 10, CALL)).rows.map(({ id }) => id),
    [third.id],
  )
})

test('several searches for lapsed leases at once agree', async (t) => {
  const store = freshStore(t)
  const grants = await claimMany(store, numbered(3 * STEP_ROWS), 1_000)
  await store.clock.advance(1_000 + limits.leaseGraceMs, CALL)
  const found = await Promise.all([1, 2, 3].map(() => store.queries.lapsed(0, 10_000, CALL)))
  for (const { rows } of found) assert.equal(rows.length, grants.length)
})

test('unknowns come in pages', async (t) => {
  const store = freshStore(t)
  const grants = await claimMany(store, numbered(25))
  await applyAll(
    store,
    grants.map((grant) => settleOf(grant, { state: 'unknown', reason: '"why"' })),
    CALL,
  )
  const seen: string[] = []
  for (let cursor: string | null = null; ; ) {
    const page = await store.queries.unknowns({ limit: 10, cursor }, CALL)
    seen.push(...page.rows.map(({ id }) => id))
    cursor = page.cursor
    if (cursor === null) break
  }
  assert.deepEqual(seen.toSorted(), grants.map(({ id }) => id).toSorted())
})

test('a cursor of another query is refused', async (t) => {
  const store = freshStore(t)
  const refused = (error: unknown) => isOnceError(error, 'bad_option')
  for (const cursor of ['', 'x', '1', '1.2.3', `1.2'; DROP TABLE onceonly_records`, '9'.repeat(40)]) {
    await assert.rejects(store.queries.list({}, { limit: 1, cursor }, CALL), refused)
    await assert.rejects(store.queries.unknowns({ limit: 1, cursor }, CALL), refused)
  }
  await assert.rejects(store.upkeep.sweep('x', 1, CALL), refused)
})
