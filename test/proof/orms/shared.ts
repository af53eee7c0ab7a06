import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import type { TestContext } from 'node:test'
import { createLedger, isOnceError } from 'onceonly'
import { createOutbox } from 'onceonly/outbox'
import { postgresStore } from 'onceonly/postgres'
import { Pool } from 'pg'
import type { OrmTransactions } from '../../../src/ledger/store/orm.ts'
import { quietLedger } from '../../support/quiet-ledger.ts'
import { atEnd, databaseUrl, freshPool, freshSchema } from '../../support/stores/postgres/store.ts'
import type { OrmCase } from './kit.ts'
import { openServerShop, openShop, who } from './shop.ts'

const fresh = () => randomUUID().slice(0, 8)

/** What must hold where the connection, the handle or its settings are shared with other code of the application. */
export const sharedCases: Readonly<Record<string, OrmCase>> = {
  'within: calls at the same time do not undo each other': async (t, row) => {
    const { orm, place, outbox, orders, messages, stateOf } = await openShop(t, row)
    const key = fresh()
    const answers = await orm.transaction(async (handle) => {
      const inside = Promise.withResolvers<void>()
      const leave = Promise.withResolvers<void>()
      const failing = place.within(handle, who(`${key}-a`), key, async ({ tx }) => {
        await orm.insert(tx, `${key}-a`)
        inside.resolve()
        await leave.promise
        throw new Error('out of stock')
      })
      await inside.promise
      const others = [
        place.within(handle, who(`${key}-b`), key, async ({ tx }) => {
          await orm.insert(tx, `${key}-b`)
          return 'placed'
        }),
        outbox.add(handle, { topic: 'order.placed', key, body: null }),
      ]
      // Whatever they have sent by now is before this on the connection.
      await orm.transactions.query(handle, 'SELECT 1', [])
      leave.resolve()
      return await Promise.allSettled([failing, ...others])
    })
    assert.deepEqual(
      answers.map(({ status }) => status),
      ['rejected', 'fulfilled', 'fulfilled'],
    )
    assert.deepEqual([await orders(key), await stateOf(`${key}-b`)], [[`${key}-b`], 'succeeded'])
    assert.equal(await messages(key), 1)
  },

  'an effect may move to the schema and the role of a tenant': async (t, row) => {
    const { orm, place, pool, stateOf } = await openServerShop(t, row)
    const key = fresh()
    const tenant = `tenant_${key}`
    await pool.query(`CREATE ROLE ${tenant}`)
    await pool.query(`CREATE SCHEMA ${tenant} AUTHORIZATION ${tenant}`)
    await pool.query(`CREATE TABLE ${tenant}.orders (name text PRIMARY KEY)`)
    await pool.query(`GRANT ALL ON ${tenant}.orders TO ${tenant}`)
    atEnd(t, async () => {
      await pool.query(`DROP SCHEMA ${tenant} CASCADE`)
      await pool.query(`DROP ROLE ${tenant}`)
    })
    const move = async (tx: unknown, name: string) => {
      await orm.raw(tx, `SET LOCAL search_path TO ${tenant}`)
      await orm.raw(tx, `SET LOCAL ROLE ${tenant}`)
      await orm.raw(tx, `INSERT INTO orders VALUES ('${name}')`)
      return name
    }
    await place.run(who(`${key}-a`), key, ({ tx }) => move(tx, 'a'))
    const role = await orm.transaction(async (handle) => {
      await place.within(handle, who(`${key}-b`), key, ({ tx }) => move(tx, 'b'))
      return await orm.transactions.query(handle, 'SELECT current_user::text AS name', [])
    })
    assert.deepEqual(Object.values(role[0] ?? {}), [tenant], 'what the effect set stays set')
    const { rows } = await pool.query(`SELECT name FROM ${tenant}.orders ORDER BY name`)
    assert.deepEqual(rows, [{ name: 'a' }, { name: 'b' }])
    assert.deepEqual([await stateOf(`${key}-a`), await stateOf(`${key}-b`)], ['succeeded', 'succeeded'])
  },

  'within: not seeing the tables is refused with what to do': async (t, row) => {
    const { orm, place } = await openShop(t, row)
    const moved = orm.transaction(async (handle) => {
      await orm.raw(handle, 'SET LOCAL search_path TO pg_catalog')
      const unseen = place.within(handle, who(fresh()), 'a', () => 'placed')
      await assert.rejects(unseen, (error) => isOnceError(error, 'bad_option') && /schema/.test(error.message))
      throw new Error('changed my mind')
    })
    await assert.rejects(moved, /changed my mind/)
  },

  'within: a read-only transaction is refused with what to do': async (t, row) => {
    const { orm, place, stateOf } = await openShop(t, row)
    const key = fresh()
    const reading = orm.transaction(async (handle) => {
      await orm.raw(handle, 'SET TRANSACTION READ ONLY')
      const claiming = place.within(handle, who(key), 'a', () => 'placed')
      await assert.rejects(claiming, (error) => isOnceError(error, 'bad_option') && /read-only/.test(error.message))
      throw new Error('changed my mind')
    })
    await assert.rejects(reading, /changed my mind/)
    assert.equal(await stateOf(key), undefined)
  },

  'an effect that commits its own handle has lost the transaction': async (t, row) => {
    const { orm, place, stateOf } = await openShop(t, row)
    const key = fresh()
    const ended = place.run(who(key), key, async ({ tx }) => {
      const { commit } = tx as { commit?: () => Promise<void> }
      if (commit === undefined) await orm.raw(tx, 'COMMIT')
      else await commit.call(tx)
      return 'done'
    })
    await assert.rejects(ended, (error) => isOnceError(error, 'transaction_lost'))
    assert.notEqual(await stateOf(key), 'succeeded')
  },
}

interface Special {
  kyselyOn(pool: Pool): {
    readonly db: {
      transaction(): { execute<T>(work: (trx: object) => Promise<T>): Promise<T> }
    }
    readonly transactions: OrmTransactions<object>
  }
  giveOtherDatabases(given: (name: string, wrong: () => unknown) => void): Promise<void>
  releaseInside(pool: Pool, url: string): Promise<{ readonly error: unknown; readonly orders: number }>
  withinSavepoints(pool: Pool): Promise<{ readonly kept: string; readonly repeated: string }>
  giveOpenTransactions(pool: Pool, url: string, given: (name: string, wrong: () => unknown) => void): Promise<void>
}

/** Only once it is installed. */
const special = async () => (await import('./app/special.ts' as string)) as Special

export async function refusesOpenTransactions(t: TestContext): Promise<void> {
  const { giveOpenTransactions } = await special()
  const names: string[] = []
  await giveOpenTransactions(await freshPool(t), await databaseUrl(), (name, wrong) => {
    names.push(name)
    assert.throws(
      wrong,
      (error) => isOnceError(error, 'bad_option') && /not a transaction that is open/.test(error.message),
    )
  })
  assert.deepEqual(names, ['kysely', 'drizzle', 'knex'])
}

export async function refusesOtherDatabases(): Promise<void> {
  const { giveOtherDatabases } = await special()
  const found: string[] = []
  await giveOtherDatabases((name, wrong) => {
    const advice =
      'Leave `transactions` out: an effect writes with `tx.query` of sqliteStore(path) or mariadbStore(pool), in the transaction of its record.'
    assert.throws(wrong, (error) => {
      const said = isOnceError(error, 'bad_option') && error.message.startsWith(`${name} `) ? error.message : ''
      found.push(said.replace(` ${advice}`, ''))
      return said.endsWith(advice)
    })
  })
  assert.deepEqual(found, [
    'kysely needs PostgreSQL or SQLite, and this one is on MysqlAdapter.',
    'drizzle needs PostgreSQL, and this one is on SQLiteAsyncDialect.',
    'knex needs PostgreSQL or SQLite, and this one is on mysql.',
    'typeorm needs PostgreSQL, and this one is on better-sqlite3.',
    'prisma needs PostgreSQL, and this one is on sqlite.',
    'sequelize needs PostgreSQL, and this one is on sqlite.',
  ])
}

/** The connection of a transaction that is open must not go back to the pool. */
export async function keepsItsConnection(t: TestContext): Promise<void> {
  const { releaseInside } = await special()
  const { error, orders } = await releaseInside(await freshPool(t), await databaseUrl())
  assert.ok(isOnceError(error, 'bad_option') && /release/.test(error.message), String(error))
  assert.equal(orders, 0)
}

export async function followsSavepoints(t: TestContext): Promise<void> {
  const { withinSavepoints } = await special()
  const { kept, repeated } = await withinSavepoints(await freshPool(t))
  assert.deepEqual([kept, repeated], ['after before', 'after before undone'])
}

/** A call of `run` in a transaction of the user needs a second client, which a pool that is taken does not have. */
export async function namesTheWayWithoutAnother(t: TestContext): Promise<void> {
  const { kyselyOn } = await special()
  await createOutbox({ ledger: quietLedger(postgresStore(await freshPool(t))) }).prepare()
  const pool = new Pool({ connectionString: await databaseUrl(), max: 1, connectionTimeoutMillis: 300 })
  const store = postgresStore(pool)
  const { db, transactions } = kyselyOn(pool)
  const ledger = createLedger({ store, transactions, background: false })
  atEnd(t, async () => {
    await ledger.stop()
    await store.stop()
    await pool.end()
  })
  const place = ledger.operation<string>({ name: 'order.place', effect: 'transaction' })
  const pay = ledger.operation<string>({ name: 'order.pay', effect: 'external' })
  const key = fresh()
  const advice = /Inside a transaction of your own, call `within` with its handle instead of `run`/
  for (let turn = 0; turn < 2; turn++) {
    await db.transaction().execute(async (trx) => {
      const second = [place, pay].map((operation) => operation.run(who(key), key, () => 'never'))
      for (const { status, ...result } of await Promise.allSettled(second)) {
        assert.equal(status, 'rejected')
        const { reason } = result as PromiseRejectedResult
        assert.ok(isOnceError(reason, 'store_unavailable') && advice.test(reason.message), String(reason))
      }
      assert.equal(await place.within(trx, who(`${key}-${turn}`), key, () => 'placed'), 'placed')
    })
  }
}

/** A process without keys would look under other ids, and run commands again. */
export async function refusesEncryptedPlace(t: TestContext): Promise<void> {
  const { kyselyOn } = await special()
  const pool = await freshPool(t)
  const schema = freshSchema()
  const sealed = postgresStore(pool, { schema, encryption: { keys: { a: randomBytes(32) } } })
  await sealed.clock.now({ timeoutMs: 10_000 })
  const store = postgresStore(pool, { schema })
  const { db, transactions } = kyselyOn(pool)
  const ledger = createLedger({ store, transactions, background: false })
  atEnd(t, async () => {
    await ledger.stop()
    await store.stop()
    await sealed.stop()
  })
  const place = ledger.operation<string>({ name: 'order.place', effect: 'transaction' })
  await db.transaction().execute(async (trx) => {
    const claiming = place.within(trx, who('a'), 'a', () => assert.fail('the effect ran'))
    await assert.rejects(claiming, (error) => isOnceError(error, 'encryption_key'))
  })
  const { rows } = await pool.query(`SELECT 1 FROM ${schema}.onceonly_records_view WHERE key = 'a'`)
  assert.deepEqual(rows, [])
}

/** The tables are not there, and the transaction holds the only connection that could make them. */
export async function saysThatTablesAreToCome(t: TestContext): Promise<void> {
  const { kyselyOn } = await special()
  const schema = `early_${fresh()}`
  const pool = new Pool({ connectionString: await databaseUrl(), max: 1 })
  const store = postgresStore(pool, { schema })
  const { db, transactions } = kyselyOn(pool)
  const ledger = createLedger({ store, transactions, background: false })
  atEnd(t, async () => {
    await ledger.stop()
    await store.stop()
    await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
    await pool.end()
  })
  const place = ledger.operation<string>({ name: 'order.place', effect: 'transaction' })
  const early = async (use: (trx: object) => Promise<unknown>, says: RegExp) => {
    const failing = db.transaction().execute(use)
    await assert.rejects(failing, (error) => isOnceError(error, 'store_unavailable') && says.test(error.message))
  }
  await early((trx) => place.within(trx, who('a'), 'a', () => 'never'), /tables of the ledger are not made yet/)
  const outbox = await db.transaction().execute(async (trx) => {
    const made = createOutbox({ ledger })
    const adding = made.add(trx, { topic: 'order.placed', body: null })
    await assert.rejects(adding, (error) => isOnceError(error, 'store_busy') && /outbox\.prepare/.test(error.message))
    return made
  })
  await outbox.prepare()
  await db.transaction().execute(async (trx) => {
    await outbox.add(trx, { topic: 'order.placed', body: null })
    assert.equal(await place.within(trx, who('a'), 'a', () => 'placed'), 'placed')
  })
}

/** The ORM and the store share the only connection, which the open transaction holds. */
export async function needsNoOtherConnection(t: TestContext): Promise<void> {
  const { kyselyOn } = await special()
  const url = await databaseUrl()
  await createOutbox({ ledger: quietLedger(postgresStore(await freshPool(t))) }).prepare()
  const open = (max: number) => {
    const pool = new Pool({ connectionString: url, max })
    const store = postgresStore(pool)
    const { db, transactions } = kyselyOn(pool)
    const ledger = createLedger({ store, transactions, background: false })
    const outbox = createOutbox({ ledger })
    atEnd(t, async () => {
      await ledger.stop()
      await store.stop()
      await pool.end()
    })
    const place = ledger.operation<string>({
      name: 'order.place',
      effect: 'transaction',
      whileRunning: { waitMs: 100 },
    })
    return { db, outbox, place }
  }
  const [one, other] = [open(1), open(3)]
  const key = fresh()
  await other.place.run(who(key), key, async () => {
    const answer = await one.db.transaction().execute(async (trx) => {
      // Its first use: whether the tables are there is not known yet.
      await one.outbox.add(trx, { topic: 'order.placed', body: null })
      return await one.place.within(trx, who(key), key, () => 'second').catch((error: unknown) => error)
    })
    assert.ok(isOnceError(answer, 'in_progress'), String(answer))
  })
}
