import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { createLedger } from 'onceonly'
import type { PostgresStore } from 'onceonly/postgres'
import type { Pool } from 'pg'
import { isOnceError } from '../../../../src/ledger/core/errors.ts'
import { errors } from '../../../../src/ledger/stores/postgres/errors.ts'
import { until } from '../../../../src/testing/until.ts'
import {
  CALL,
  claimAll,
  claimIn,
  claimOf,
  flush,
  freshPool,
  freshSchema,
  kindOf,
  openStore,
  settleOf,
  TRANSACTION,
  testPostgres,
} from '../../../support/stores/postgres/store.ts'

/**
 * A server whose notification queue is full: filling the real one takes eight gigabytes. The sessions find another
 * `pg_notify`, which fails as it does with a full queue: at the commit of the notifying session, and with its code.
 */
async function fullQueue(t: TestContext): Promise<{ store: PostgresStore; pool: Pool; tried(): Promise<number> }> {
  const [schema, admin] = [freshSchema(), await freshPool(t)]
  await admin.query(`
    CREATE SCHEMA ${schema};
    CREATE SEQUENCE ${schema}.tried;
    CREATE TABLE ${schema}.queue (payload text);
    CREATE FUNCTION ${schema}.pg_notify(channel text, payload text) RETURNS void LANGUAGE sql AS
      $$ INSERT INTO ${schema}.queue VALUES (payload) $$;
    CREATE FUNCTION ${schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      PERFORM nextval('${schema}.tried');
      RAISE EXCEPTION 'too many notifications in the NOTIFY queue' USING ERRCODE = '54000';
    END $$;
    CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON ${schema}.queue DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION ${schema}.refuse();`)
  const pool = await freshPool(t, { options: `-c search_path=${schema},pg_catalog` })
  const store = await openStore(t, { schema: undefined as never }, pool)
  const tried = async () => {
    const { rows } = await admin.query<{ n: number }>(
      `SELECT last_value::int AS n FROM ${schema}.tried WHERE is_called`,
    )
    return rows[0]?.n ?? 0
  }
  return { store, pool, tried }
}

const wait = (store: PostgresStore, key: string) => store.claims.apply(claimOf(key, { wait: true }), CALL)

testPostgres('a full queue of notifications takes no outcome with it', async (t) => {
  const { store, tried } = await fullQueue(t)
  const alone = await claimIn(store, 'alone')
  await wait(store, 'alone')
  assert.equal(kindOf(await store.claims.apply(settleOf(alone), CALL)), 'applied')
  assert.equal(await tried(), 1, 'the notification failed')
  const many = await claimAll(store, ['a', 'b', 'c'])
  for (const key of ['a', 'b', 'c']) await wait(store, key)
  const settles = many.map((grant) => settleOf(grant))
  assert.deepEqual((await flush(store, settles, CALL)).map(kindOf), ['applied', 'applied', 'applied'])
  const held = await claimIn(store, 'attached')
  await wait(store, 'attached')
  const { id, claimId, fence } = held
  const attach = { kind: 'attach', id, claimId, fence, pointer: { type: 'x', id: '1' } } as const
  assert.equal(kindOf(await store.claims.apply(attach, CALL)), 'applied')
  const unknown = settleOf(held, { state: 'unknown', reason: null })
  assert.equal(kindOf(await store.claims.apply(unknown, CALL)), 'applied')
  const { records } = await store.claims.read([alone.id, ...many.map((grant) => grant.id), id], CALL)
  assert.deepEqual(
    records.map((record) => record?.state),
    ['succeeded', 'succeeded', 'succeeded', 'succeeded', 'unknown'],
  )
})

testPostgres('nor a transaction, and a waiting caller polls', async (t) => {
  const { store, pool, tried } = await fullQueue(t)
  await pool.query('CREATE TABLE orders (id text)')
  const once = createLedger({ store, background: false })
  const pay = once.operation({ name: 'pay', effect: 'repeatable' })
  const who = { tenant: 'acme', caller: 'ann', key: 'k' }
  const other = createLedger({ store: await openStore(t, { schema: undefined as never }, pool), background: false })
  const twin = other.operation({ name: 'pay', effect: 'repeatable' })
  const [started, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const first = pay.run(who, 1, async () => {
    started.resolve()
    await go.promise
    return 'paid'
  })
  await started.promise
  const joined = twin.run(who, 1, () => assert.fail('the effect ran twice'))
  const waits = "SELECT 1 FROM onceonly_records WHERE operation = 'pay' AND awaited = 1"
  await until(
    'the duplicate waits',
    async () => (await pool.query(waits)).rows.length,
    (rows) => rows === 1,
  )
  go.resolve()
  assert.deepEqual(await Promise.all([first, joined]), ['paid', 'paid'])
  assert.ok((await tried()) >= 1)
  const grant = await claimIn(store, 'in a transaction')
  await wait(store, 'in a transaction')
  await store.transactions.run(async ({ tx, apply }) => {
    await tx.query('INSERT INTO orders VALUES (?)', ['1'])
    assert.equal((await apply(settleOf(grant))).decision.kind, 'applied')
  }, TRANSACTION)
  assert.equal((await pool.query('SELECT 1 FROM orders')).rows.length, 1)
  await Promise.all([once.stop(), other.stop()])
})

testPostgres('a notification of a room that finds the queue full is worth another try, and blames no row', async () => {
  // As node-postgres gives what PostgreSQL 15 reports, `async.c` being the file of NOTIFY.
  const full = (file: string) =>
    Object.assign(new Error('too many notifications in the NOTIFY queue'), { severity: 'ERROR', code: '54000', file })
  const error = errors.storeError(full('async.c'), 'maybe')
  assert.ok(isOnceError(error, 'store_busy') && error.retryable && error.applied === 'no')
  assert.ok(errors.leavesConnectionUsable(full('async.c')))
  assert.ok(isOnceError(errors.storeError(full('nbtinsert.c'), 'maybe'), 'row_refused'))
})
