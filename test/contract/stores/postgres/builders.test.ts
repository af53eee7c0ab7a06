import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { pgTable, text } from 'drizzle-orm/pg-core'
import { sql } from 'kysely'
import type { TransactionalOperation } from 'onceonly'
import { createLedger, isOnceError } from 'onceonly'
import type { PostgresStore, PostgresTx } from 'onceonly/postgres'
import type { Pool, PoolClient } from 'pg'
import { checkNestedHistories, drizzleOn, kyselyOn } from '../../../support/stores/postgres/nested.ts'
import {
  CALL,
  claimOf,
  freshPool,
  freshSchema,
  openStore,
  testPostgres,
} from '../../../support/stores/postgres/store.ts'

/** Query builders on the client of a transaction: what they begin and end is a part of it. */

interface Tables {
  orders: { name: string }
}
const orders = pgTable('orders', { name: text('name').notNull() })

async function shop(t: TestContext) {
  const schema = freshSchema()
  const pool = await freshPool(t)
  const store = await openStore(t, { schema }, pool)
  const up = () => ['CREATE TABLE orders (name text PRIMARY KEY)']
  await store.sql.migrate('shop', [{ version: 1, oldestCode: 1, up }])
  const ledger = createLedger({ store, background: false })
  t.after(() => ledger.stop())
  let place: TransactionalOperation<null, PostgresTx> | null = null
  const transact = (key: string, effect: (tx: PostgresTx) => Promise<unknown>) =>
    (place ??= ledger.operation<null>({ name: 'order.create', effect: 'transaction' })).run(
      { tenant: 'acme', caller: 'web', key },
      null,
      ({ tx }) => effect(tx),
    )
  return { store, ledger, pool, schema, transact }
}

async function ordersIn(store: PostgresStore): Promise<string[]> {
  const rows = await store.sql.query<{ name: string }>('SELECT name FROM orders ORDER BY name')
  return rows.map(({ name }) => name)
}

async function stateOf(store: PostgresStore, key: string): Promise<string | undefined> {
  return (await store.claims.read([claimOf(key).id], CALL)).records[0]?.state
}

/** Inserts the names in a transaction of its own, as an unrelated library would. */
type Nested = (tx: PostgresTx, names: readonly string[], fails?: boolean) => Promise<void>

const builders: Readonly<Record<string, Nested>> = {
  Kysely: async (tx, names, fails = false) => {
    await kyselyOn<Tables>(tx)
      .transaction()
      .execute(async (trx) => {
        for (const name of names) await trx.insertInto('orders').values({ name }).execute()
        if (fails) throw new Error('undone')
      })
  },
  Drizzle: async (tx, names, fails = false) => {
    await drizzleOn(tx).transaction(async (trx) => {
      for (const name of names) await trx.insert(orders).values({ name })
      if (fails) throw new Error('undone')
    })
  },
}

for (const [builder, nested] of Object.entries(builders)) {
  testPostgres(`${builder}: nothing stays of an effect that throws after a nested commit`, async (t) => {
    const { store, transact } = await shop(t)
    const failing = transact('a', async (tx) => {
      await nested(tx, ['one', 'two'])
      throw new Error('out of stock')
    })
    await assert.rejects(failing, /out of stock/)
    assert.deepEqual(await ordersIn(store), [])
    assert.equal(await stateOf(store, 'a'), undefined)
    await transact('a', (tx) => nested(tx, ['one']))
    assert.deepEqual(await ordersIn(store), ['one'])
    assert.equal(await stateOf(store, 'a'), 'succeeded')
  })

  testPostgres(`${builder}: a nested rollback undoes its own rows, also after a failed statement`, async (t) => {
    const { store, transact } = await shop(t)
    await transact('a', async (tx) => {
      await tx.query('INSERT INTO orders VALUES (?)', ['before'])
      await assert.rejects(nested(tx, ['undone'], true), /undone/)
      await assert.rejects(nested(tx, ['twice', 'twice']))
      await nested(tx, ['kept'])
      await tx.query('INSERT INTO orders VALUES (?)', ['after'])
    })
    assert.deepEqual(await ordersIn(store), ['after', 'before', 'kept'])
  })
}

testPostgres('savepoints of the builders work inside a nested transaction', async (t) => {
  const { store, transact } = await shop(t)
  await transact('a', async (tx) => {
    await drizzleOn(tx).transaction(async (outer) => {
      await outer.insert(orders).values({ name: 'outer' })
      const inner = outer.transaction(async (trx) => {
        await trx.insert(orders).values({ name: 'inner' })
        throw new Error('inner')
      })
      await assert.rejects(inner, /inner/)
      await outer.transaction(async (trx) => void (await trx.insert(orders).values({ name: 'second' })))
    })
    const trx = await kyselyOn<Tables>(tx).startTransaction().execute()
    await trx.insertInto('orders').values({ name: 'third' }).execute()
    const part = await trx.savepoint('part').execute()
    await part.insertInto('orders').values({ name: 'fourth' }).execute()
    await (await part.rollbackToSavepoint('part').execute()).releaseSavepoint('part').execute()
    await trx.commit().execute()
  })
  assert.deepEqual(await ordersIn(store), ['outer', 'second', 'third'])
})

testPostgres('every way to write a transaction statement is understood, or refused before it is sent', async (t) => {
  const { store, transact } = await shop(t)
  await transact('a', async (tx) => {
    const client = tx.client as unknown as PoolClient
    const insert = (name: string) => client.query('INSERT INTO orders VALUES ($1)', [name])
    const command = async (given: string) => (await client.query(given)).command
    assert.equal(await command('/* a /* nested */ comment */ begin -- now\n work;'), 'BEGIN')
    await insert('undone')
    assert.equal((await client.query({ text: ' RollBack ' })).command, 'ROLLBACK')
    assert.equal(await command('START TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE'), 'BEGIN')
    await insert('kept')
    await command('SAVEPOINT onceonly_part')
    await insert('undone')
    await command('ROLLBACK TO "onceonly_part"')
    await command('release savepoint ONCEONLY_PART')
    await new Promise<void>((resolve, reject) => {
      client.query('END TRANSACTION', (error: Error | undefined) => (error ? reject(error) : resolve()))
    })
    const refused = [
      'COMMIT',
      'ROLLBACK',
      'ABORT',
      'RELEASE onceonly_part',
      'ROLLBACK TO SAVEPOINT onceonly_part',
      'COMMIT AND CHAIN',
      "PREPARE TRANSACTION 'x'",
      "COMMIT PREPARED 'x'",
      'SELECT 1; COMMIT',
      "INSERT INTO orders VALUES ('x'); /* ; */ rollback; BEGIN",
      'BEGIN ISOLATION LEVEL SERIALIZABLE',
    ]
    for (const statement of refused) {
      for (const run of [
        () => client.query(statement),
        () => client.query({ text: statement }),
        () => tx.query(statement),
      ]) {
        await assert.rejects(
          async () => run(),
          (error) => isOnceError(error, 'bad_option'),
          statement,
        )
      }
    }
    // Words inside of strings and comments end nothing, and several harmless statements may be sent at once.
    await client.query("SELECT 'x; COMMIT'; SELECT $q$ ; ROLLBACK $q$ /* ; END */; SELECT 1 AS begin")
    await assert.rejects(sql`commit`.execute(kyselyOn<Tables>(tx)), (error) => isOnceError(error, 'bad_option'))
    client.release()
    await insert('last')
  })
  assert.deepEqual(await ordersIn(store), ['kept', 'last'])
})

testPostgres('a nested transaction that is left open fails the effect', async (t) => {
  const { store, transact } = await shop(t)
  const open = transact('a', async (tx) => {
    await (tx.client as unknown as PoolClient).query('BEGIN')
    await tx.query('INSERT INTO orders VALUES (?)', ['open'])
  })
  await assert.rejects(open, (error) => isOnceError(error, 'transaction_aborted') && error.applied === 'no')
  assert.deepEqual(await ordersIn(store), [])
  assert.equal(await stateOf(store, 'a'), undefined)
})

/** The client behind the one that is handed out, as code could have kept it from an event of the pool. */
async function behind(pool: Pool, tx: PostgresTx): Promise<PoolClient> {
  const [row] = await tx.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  const { _clients: clients } = pool as unknown as { _clients: readonly (PoolClient & { processID: number })[] }
  const found = clients.find(({ processID }) => processID === row?.pid)
  assert.ok(found !== undefined)
  return found
}

const afterwards: Readonly<Record<string, () => Promise<string>>> = {
  returns: async () => 'done',
  throws: () => Promise.reject(new Error('out of stock')),
}

for (const [after, effect] of Object.entries(afterwards)) {
  testPostgres(`an effect that ${after} after its transaction was committed behind it is not settled`, async (t) => {
    const { store, pool, transact } = await shop(t)
    const torn = transact('a', async (tx) => {
      await tx.query('INSERT INTO orders VALUES (?)', ['torn'])
      await (await behind(pool, tx)).query('COMMIT')
      return effect()
    })
    await assert.rejects(torn, (error) => isOnceError(error, 'transaction_lost') && error.applied === 'maybe')
    // The row stays, so the record says that its outcome is unknown, and no retry writes it again.
    await store.clock.advance(3_600_000, CALL)
    await assert.rejects(
      transact('a', () => assert.fail('the effect ran again')),
      (error) => isOnceError(error, 'outcome_unknown'),
    )
    assert.deepEqual(await ordersIn(store), ['torn'])
  })
}

testPostgres('an effect whose transaction was rolled back behind it has written nothing', async (t) => {
  const { store, pool, transact } = await shop(t)
  const torn = transact('a', async (tx) => {
    await tx.query('INSERT INTO orders VALUES (?)', ['torn'])
    await (await behind(pool, tx)).query('ROLLBACK')
  })
  await assert.rejects(torn, (error) => isOnceError(error))
  assert.deepEqual(await ordersIn(store), [])
  await transact('a', (tx) => tx.query('INSERT INTO orders VALUES (?)', ['again']))
  assert.deepEqual(await ordersIn(store), ['again'])
})

testPostgres('200 random effects with nested parts and errors leave the rows that their records name', async (t) => {
  const { store, ledger } = await shop(t)
  await checkNestedHistories({ store, ledger, histories: 200 })
})
