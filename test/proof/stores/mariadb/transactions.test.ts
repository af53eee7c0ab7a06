import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from 'onceonly'
import type { MariadbPool } from 'onceonly/mariadb'
import { mariadbStore } from 'onceonly/mariadb'
import { claimOf, DONE, settleOf } from '../../../../src/ledger/store/test-requests.ts'
import { applyTo } from '../../../../src/testing/apply-all.ts'
import { poolWith, testMariadb } from '../../../support/stores/mariadb/stage.ts'

/** The number of the error. */
const LOCK_TIMEOUT = 1205
const CALL = { timeoutMs: 10_000, lockMs: 3_000, refuseTwinOf: null }

testMariadb(
  'of two effects that wait for each other one is undone, and sends nothing more',
  async ({ database, open }) => {
    const store = open()
    const pool = database.pool()
    await pool.query('CREATE TABLE stock (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)')
    await pool.query('INSERT INTO stock VALUES (1, 0), (2, 0)')
    const bothHold = Promise.withResolvers<void>()
    let holding = 0
    const effect = (key: string, first: number, second: number) =>
      store.transactions.run(async ({ tx, apply }) => {
        await apply(claimOf(key))
        await tx.query('UPDATE stock SET n = n + 1 WHERE id = ?', [first])
        if (++holding === 2) bothHold.resolve()
        await bothHold.promise
        try {
          await tx.query('UPDATE stock SET n = n + 1 WHERE id = ?', [second])
        } catch (error) {
          await assert.rejects(tx.query('UPDATE stock SET n = 100 WHERE id = ?', [first]), (later) =>
            isOnceError(later, 'store_busy'),
          )
          throw error
        }
      }, CALL)
    const ends = await Promise.allSettled([effect('a', 1, 2), effect('b', 2, 1)])
    const failed = ends.filter((end) => end.status === 'rejected')
    assert.equal(failed.length, 1)
    assert.ok(isOnceError(failed[0]?.reason, 'store_busy') && failed[0].reason.applied === 'no')
    const rows = await pool.query('SELECT id, n FROM stock ORDER BY id')
    assert.deepEqual(rows, [
      { id: 1, n: 1 },
      { id: 2, n: 1 },
    ])
    assert.equal((await store.queries.count({}, { timeoutMs: 10_000 })).in_progress, 1)
  },
)

testMariadb('a COMMIT without an answer is reported as one that may have happened', async ({ database, open }) => {
  let cut = false
  const store = open(
    poolWith(database.pool(), async ({ connection, sql }, pass) => {
      if (!cut || sql !== 'COMMIT') return pass()
      await pass()
      connection.destroy()
      throw new Error('socket hang up')
    }),
  )
  await store.clock.now(CALL)
  cut = true
  const running = store.transactions.run(async ({ apply }) => {
    const { decision } = await apply(claimOf('a'))
    assert.ok('lease' in decision)
    await apply(settleOf(decision.lease, DONE))
  }, CALL)
  await assert.rejects(running, (error) => isOnceError(error, 'store_unavailable') && error.applied === 'maybe')
  cut = false
  assert.equal((await store.claims.apply(claimOf('a'), CALL)).decision.kind, 'replay_success')
})

testMariadb(
  'what would commit by itself is refused, and the session gets its settings back',
  async ({ database, open }) => {
    const pool = database.pool()
    const settings = `SELECT CONCAT_WS(' ', @@idle_transaction_timeout, @@innodb_lock_wait_timeout) AS bounds`
    const seen: unknown[] = []
    const store = open(
      poolWith(pool, async ({ connection, sql }, pass) => {
        const answer = await pass()
        const ended = sql.startsWith('SET SESSION idle_transaction_timeout = @')
        if (ended) seen.push(await connection.query({ sql: settings }))
        return answer
      }),
    )
    await store.transactions.run(async ({ tx, apply }) => {
      for (const text of [
        'CREATE TABLE t (n INTEGER)',
        ' -- why\n COMMIT',
        '/* a */ truncate onceonly_records',
        'BEGIN',
      ]) {
        await assert.rejects(tx.query(text), (error) => isOnceError(error, 'bad_option'), text)
      }
      await apply(claimOf('a'))
    }, CALL)
    assert.deepEqual(seen, [await pool.query(settings)])
    assert.equal((await store.claims.apply(claimOf('a'), CALL)).decision.kind, 'in_progress')
  },
)

testMariadb(
  'a lock that took too long ends the transaction where the server undid all of it',
  async ({ database, open }) => {
    const pool = database.pool()
    await pool.query('CREATE TABLE stock (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)')
    await pool.query('INSERT INTO stock VALUES (1, 0)')
    // The setting `innodb_rollback_on_timeout` is the server's, and only a restart changes it.
    const undoing = poolWith(database.pool(), async ({ connection }, pass) => {
      try {
        return await pass()
      } catch (error) {
        if (error instanceof Error && 'errno' in error && error.errno === LOCK_TIMEOUT) {
          await connection.query({ sql: 'ROLLBACK' })
        }
        throw error
      }
    })
    const store = open(undoing)
    const holder = await pool.getConnection()
    try {
      await holder.query({ sql: 'START TRANSACTION' })
      await holder.query({ sql: 'UPDATE stock SET n = 9 WHERE id = 1' })
      const running = store.transactions.run(
        async ({ tx, apply }) => {
          await apply(claimOf('a'))
          await tx.query('INSERT INTO stock VALUES (2, 0)')
          await assert.rejects(tx.query('UPDATE stock SET n = 1 WHERE id = 1'))
          await tx.query('INSERT INTO stock VALUES (3, 0)').catch(() => undefined)
        },
        { ...CALL, lockMs: 1_000 },
      )
      await assert.rejects(running, (error) => isOnceError(error, 'store_busy') && error.applied === 'no')
    } finally {
      await holder.query({ sql: 'ROLLBACK' })
      await holder.release()
    }
    assert.deepEqual(await pool.query('SELECT id, n FROM stock'), [{ id: 1, n: 0 }])
    const { decision } = await store.claims.apply(claimOf('a'), CALL)
    assert.equal(decision.kind, 'first_attempt')
  },
)

testMariadb('numbers of an effect keep their digits', async ({ open }) => {
  const store = open()
  const rows = await store.transactions.run(({ tx }) => tx.query('SELECT 9007199254740993 AS n'), CALL)
  assert.deepEqual(rows, [{ n: 9_007_199_254_740_993n }])
})

testMariadb(
  'fences grow after the tables were lost, and keys differ by case and by spaces',
  async ({ database, open }) => {
    const store = open()
    const before = await store.claims.apply(claimOf('a'), CALL)
    const pool = database.pool()
    for (const table of ['records', 'migrations', 'meta']) await pool.query(`DROP TABLE onceonly_${table}`)
    await pool.query('DROP SEQUENCE onceonly_fences')
    await assert.rejects(applyTo(store, claimOf('a'), CALL), (error) => isOnceError(error, 'store_unavailable'))
    const after = await store.claims.apply(claimOf('a'), CALL)
    assert.ok('lease' in before.decision && 'lease' in after.decision)
    assert.ok(after.decision.lease.fence > before.decision.lease.fence)
    for (const key of ['a ', 'A', '😀']) await store.claims.apply(claimOf(key), CALL)
    for (const key of ['a', 'a ', 'A', '😀']) {
      const { rows } = await store.queries.list({ key }, { limit: 10, cursor: null }, CALL)
      assert.deepEqual(
        rows.map(({ record }) => record.identity.key),
        [key],
      )
    }
  },
)

test('the store says what it needs instead of a pool', () => {
  const wrong = ['mariadb://root@db/app', { host: 'db' }, { beginTransaction: () => undefined }, null]
  for (const given of wrong) {
    assert.throws(
      () => mariadbStore(given as unknown as MariadbPool),
      (error) => isOnceError(error, 'bad_option'),
    )
  }
})
