import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { createLedger, isOnceError, type SqlStore } from 'onceonly'
import { createAdmin } from 'onceonly/admin'
import { postgresStore } from 'onceonly/postgres'
import { sqliteStore } from 'onceonly/sqlite'
import { freshPool, freshSchema, testPostgres } from '../../support/stores/postgres/store.ts'

const identity = { tenant: 'acme', caller: 'ada', key: 'k1' }
const tooOld = (error: unknown) => isOnceError(error, 'schema_too_old')

test('a SQLite store that only checks its tables creates no file, and works where the tables are', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-migrate-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'once.db')
  const runOn = async (migrate: 'auto' | 'check', key: string) => {
    await using store = sqliteStore(path, { migrate })
    await using once = createLedger({ store, background: false })
    return await once.operation({ name: 'pay', effect: 'external' }).run({ ...identity, key }, null, () => 'paid')
  }
  await assert.rejects(runOn('check', 'k1'), tooOld)
  assert.equal(existsSync(path), false)
  assert.equal(await runOn('auto', 'k2'), 'paid')
  assert.equal(await runOn('check', 'k3'), 'paid')
})

test('a store that only checks refuses the missing tables of another wing', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-migrate-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'once.db')
  const steps = [{ version: 1, oldestCode: 1, up: () => ['CREATE TABLE mine (id INTEGER)'] }]
  {
    await using auto = sqliteStore(path)
    await auto.sql.query('select 1')
  }
  await using checked = sqliteStore(path, { migrate: 'check' })
  await assert.rejects(checked.sql.migrate('mine', steps), tooOld)
  await using auto = sqliteStore(path)
  await auto.sql.migrate('mine', steps)
  await checked.sql.migrate('mine', steps)
})

test('another word for `migrate` is refused', () => {
  assert.throws(() => sqliteStore('once.db', { migrate: 'never' as never }), {
    code: 'bad_option',
    message: "sqliteStore: `migrate` must be 'auto' or 'check', not \"never\".",
  })
})

/** Runs the printed SQL by another hand, then works on tables that the store itself may not touch. */
async function provePrintedSql(
  open: (migrate: 'auto' | 'check') => SqlStore & { stop(): Promise<void> },
  execute: (sql: string) => unknown,
): Promise<void> {
  const store = open('auto')
  const once = createLedger({ store, background: false })
  const admin = createAdmin({ store, ledger: once })
  await execute((await admin.migrations()).map((each) => `${each};`).join('\n'))
  assert.deepEqual(await admin.migrations(), [])
  await once.stop()
  await store.stop()
  const checked = open('check')
  const ledger = createLedger({ store: checked, background: false })
  const checkedAdmin = createAdmin({ store: checked, ledger })
  assert.ok((await checkedAdmin.migrate()).size > 1)
  const pay = ledger.operation({ name: 'pay', effect: 'transaction' })
  assert.equal(await pay.run(identity, null, () => 'paid'), 'paid')
  assert.equal(await pay.run(identity, null, () => 'paid again'), 'paid')
  await ledger.stop()
  await checked.stop()
}

test('the printed SQL makes all tables of an empty SQLite file', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-migrate-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'once.db')
  await provePrintedSql(
    (migrate) => sqliteStore(path, { migrate }),
    (sql) => {
      assert.equal(existsSync(path), false)
      using db = new DatabaseSync(path)
      db.exec(sql)
    },
  )
})

testPostgres('the printed SQL makes all tables of an empty schema of PostgreSQL', async (t) => {
  const [pool, schema] = [await freshPool(t), freshSchema()]
  await provePrintedSql(
    (migrate) => postgresStore(pool, { schema, migrate }),
    async (sql) => {
      const { rows } = await pool.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema])
      assert.deepEqual(rows, [])
      const client = await pool.connect()
      await client.query(sql)
      // Its search path is the session's own now.
      client.release(true)
    },
  )
})
