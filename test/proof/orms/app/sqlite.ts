import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { defineEntity, MikroORM, SqliteDriver } from '@mikro-orm/sql'
import Database from 'better-sqlite3'
import Knex, { type Knex as KnexTypes } from 'knex'
import { CamelCasePlugin, type Dialect, Kysely, type KyselyPlugin, SqliteDialect, sql, type Transaction } from 'kysely'
import { createLedger } from 'onceonly'
import { knex } from 'onceonly/knex'
import { kysely } from 'onceonly/kysely'
import { mikroOrm } from 'onceonly/mikro-orm'
import { sqliteStore } from 'onceonly/sqlite'
import { fileRow, sameType } from './row.ts'

interface Tables {
  orders: { name: string }
}

const Order = defineEntity({ name: 'Order', tableName: 'orders', properties: (p) => ({ name: p.text().primary() }) })

const onBetter = (path: string) => new SqliteDialect({ database: new Database(path) })

/** What the dialect uses of a driver, on that of Node. */
function onNode(path: string): Dialect {
  const db = new DatabaseSync(path)
  const values = (given: readonly unknown[]) => given as SQLInputValue[]
  return new SqliteDialect({
    database: {
      close: () => db.close(),
      prepare: (text) => {
        const statement = db.prepare(text)
        return {
          reader: statement.columns().length > 0,
          all: (given) => statement.all(...values(given)),
          run: (given) => statement.run(...values(given)),
          iterate: (given) => statement.iterate(...values(given)),
        }
      },
    },
  })
}

function kyselyOn(dialect: Dialect, plugins: KyselyPlugin[] = []) {
  const db = new Kysely<Tables>({ dialect, plugins })
  return {
    transactions: kysely(db),
    insert: async (tx: Transaction<Tables>, value: string) => {
      await tx.insertInto('orders').values({ name: value }).execute()
    },
    transaction: <T>(work: (tx: Transaction<Tables>) => Promise<T>) => db.transaction().execute(work),
    nested: null,
    raw: (tx: Transaction<Tables>, text: string) => sql.raw(text).execute(tx),
    close: () => db.destroy(),
  }
}

const better = { driver: Database }

export const sqliteRows = [
  fileRow('Kysely on better-sqlite3', better, async (path) => kyselyOn(onBetter(path))),
  fileRow('Kysely on node:sqlite, with CamelCasePlugin', {}, async (path) =>
    kyselyOn(onNode(path), [new CamelCasePlugin()]),
  ),
  fileRow('Knex on better-sqlite3', better, async (path) => {
    const db = Knex({ client: 'better-sqlite3', connection: { filename: path }, useNullAsDefault: true })
    return {
      transactions: knex(db),
      insert: async (tx: KnexTypes.Transaction, value) => {
        await tx('orders').insert({ name: value })
      },
      transaction: (work) => db.transaction(work),
      nested: async (tx, work) => {
        await tx.transaction(work)
      },
      raw: async (tx, text) => await tx.raw(text),
      close: () => db.destroy(),
    }
  }),
  fileRow('MikroORM on better-sqlite3', better, async (path) => {
    const orm = await MikroORM.init({
      driver: SqliteDriver,
      dbName: path,
      driverOptions: onBetter(path),
      entities: [Order],
    })
    return {
      transactions: mikroOrm(orm),
      // Only collected here: the unit of work is flushed before the outcome is recorded.
      insert: async (tx: typeof orm.em, name) => {
        tx.persist(tx.create(Order, { name }))
      },
      transaction: (work) => orm.em.fork().transactional((em) => work(em)),
      nested: async (tx, work) => {
        await tx.transactional((inner) => work(inner))
      },
      raw: (tx, text) => tx.execute(text),
      close: () => orm.close(),
    }
  }),
]

/** Kysely by better-sqlite3, for what concerns the file. */
export function kyselyOnFile(path: string) {
  const database = new Database(path)
  return {
    ...kyselyOn(new SqliteDialect({ database })),
    driver: Database,
    pragma: (text: string) => database.pragma(text),
    /** A connection of its own to the same file. */
    connect: () => new Database(path, { timeout: 0 }),
  }
}

export type Driver = typeof Database

/** Checked by the compiler only. */
export function types(db: Kysely<Tables>, on: KnexTypes): void {
  const store = sqliteStore('shop.db', { driver: Database })
  const once = createLedger({ store, transactions: kysely(db) })
  const place = once.operation<string>({ name: 'order.place', effect: 'transaction' })
  const who = { tenant: 'a', caller: 'b', key: 'c' }
  void place.run(who, 'lamp', ({ tx }) => sameType<typeof tx, Transaction<Tables>>(true))
  const pack = createLedger({ store, transactions: knex(on) }).operation<string>({
    name: 'pack',
    effect: 'transaction',
  })
  void pack.run(who, 'lamp', ({ tx }) => sameType<typeof tx, KnexTypes.Transaction>(true))
}
