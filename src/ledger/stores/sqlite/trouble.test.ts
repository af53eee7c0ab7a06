import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { applyAll } from '../../../testing/apply-all.ts'
import { isOnceError } from '../../core/errors.ts'
import { CALL, claimIn, claimOf, DONE, freshPath, freshStore, openStore, settleOf, TRANSACTION } from './test-store.ts'

const large = { state: 'succeeded', outcome: { kept: 'response', data: `"${'x'.repeat(500_000)}"` } } as const
const full = (error: unknown) =>
  isOnceError(error, 'store_unavailable') && error.applied === 'no' && error.message.includes('full')

test('a full disk is reported as such, nothing of the batch is applied, and the store continues when there is room', async (t) => {
  const store = freshStore(t)
  const grants = [await claimIn(store, 'a'), await claimIn(store, 'b')] as const
  const ids = grants.map(({ id }) => id)
  // A bound on the writer's connection only: it is gone when the connections are opened again.
  await store.sql.query('PRAGMA max_page_count = 30')
  const settles = [settleOf(grants[0]), settleOf(grants[1], large)]
  for (const applied of await applyAll(store, settles, CALL)) assert.ok('error' in applied && full(applied.error))
  const before = await store.claims.read(ids, CALL)
  assert.deepEqual(
    before.records.map((record) => record?.state),
    ['in_progress', 'in_progress'],
  )
  await applyAll(store, settles, CALL)
  const after = await store.claims.read(ids, CALL)
  assert.deepEqual(
    after.records.map((record) => record?.state),
    ['succeeded', 'succeeded'],
  )
})

test('a disk that is full in the middle of an effect rolls the effect back', async (t) => {
  const store = freshStore(t)
  await store.sql.query('CREATE TABLE orders (name TEXT)')
  const running = store.transactions.run(async ({ tx }) => {
    await tx.query('PRAGMA max_page_count = 30')
    await tx.query(`INSERT INTO orders VALUES ('kept?')`)
    await tx.query('INSERT INTO orders VALUES (?)', ['x'.repeat(500_000)]).catch(() => undefined)
    await assert.rejects(tx.query(`INSERT INTO orders VALUES ('outside')`), full)
  }, TRANSACTION)
  await assert.rejects(running, full)
  assert.deepEqual(await store.sql.query('SELECT name FROM orders'), [])
  await store.transactions.run(({ tx }) => tx.query(`INSERT INTO orders VALUES ('later')`), TRANSACTION)
  assert.deepEqual(await store.sql.query('SELECT name FROM orders'), [{ name: 'later' }])
})

test('a record that another version damaged fails alone', async (t) => {
  const path = freshPath(t)
  const store = openStore(t, path)
  await claimIn(store, 'damaged')
  const db = new DatabaseSync(path)
  db.exec(`UPDATE onceonly_records SET detail = 'not JSON'`)
  db.close()
  const [damaged, good] = await applyAll(store, [claimOf('damaged'), claimOf('good')], CALL)
  assert.ok(damaged !== undefined && 'error' in damaged && damaged.error.code === 'row_refused')
  assert.ok(good !== undefined && 'decision' in good && good.decision.kind === 'first_attempt')
})

test('a folder that comes later needs no restart', async (t) => {
  const folder = `${freshPath(t)}.folder`
  const store = openStore(t, `${folder}/records.db`)
  await assert.rejects(claimIn(store, 'a'), (error) => isOnceError(error, 'store_unavailable'))
  mkdirSync(folder)
  await claimIn(store, 'a')
})

test('values of a settle that never fit are refused alone also inside a transaction', async (t) => {
  const store = freshStore(t)
  await store.transactions.run(async ({ apply, tx }) => {
    const granted = await apply(claimOf('a'))
    assert.ok('lease' in granted.decision)
    const bad = { ...DONE, outcome: { kept: 'response', data: '\ud800' } } as const
    await assert.rejects(apply(settleOf(granted.decision.lease, bad)), (error) => isOnceError(error, 'row_refused'))
    await tx.query('SELECT 1')
    await apply(settleOf(granted.decision.lease))
  }, TRANSACTION)
  assert.equal((await store.queries.count({}, CALL)).succeeded, 1)
})
