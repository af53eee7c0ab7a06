import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { TestContext } from 'node:test'
import { createLedger, isOnceError } from 'onceonly'
import { createOutbox } from 'onceonly/outbox'
import { postgresStore } from 'onceonly/postgres'
import { Pool } from 'pg'
import type { OrmTransactions } from '../../../src/ledger/store/orm.ts'
import { atEnd, databaseUrl, freshPool } from '../../support/stores/postgres/store.ts'
import type { OrmCase } from './kit.ts'
import { openShop, who } from './shop.ts'

const fresh = () => randomUUID().slice(0, 8)

/** What must hold where the connection, the handle or its settings are shared with other code of the application. */
export const sharedCases: Readonly<Record<string, OrmCase>> = {
  'within: calls at the same time do not undo each other': async (t, row) => {
    const { orm, place, outbox, orders, pool, stateOf } = await openShop(t, row)
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
    const rows = await pool.query('SELECT 1 FROM onceonly_outbox_rows WHERE key = $1', [key])
    assert.equal(rows.rowCount, 1)
  },

  'an effect may move to the schema and the role of a tenant': async (t, row) => {
    const { orm, place, pool, stateOf } = await openShop(t, row)
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

/** The ORM and the store share the only connection, which the open transaction holds. */
export async function needsNoOtherConnection(t: TestContext): Promise<void> {
  const { kyselyOn } = await special()
  const url = await databaseUrl()
  await createOutbox({ store: postgresStore(await freshPool(t)) }).prepare()
  const open = (max: number) => {
    const pool = new Pool({ connectionString: url, max })
    const store = postgresStore(pool)
    const { db, transactions } = kyselyOn(pool)
    const outbox = createOutbox({ store, transactions })
    const ledger = createLedger({ store, transactions, background: false })
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
