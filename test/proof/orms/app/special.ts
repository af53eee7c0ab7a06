import { drizzle as drizzleOn } from 'drizzle-orm/node-postgres'
import { drizzle as drizzleOnSqlite } from 'drizzle-orm/sqlite-proxy'
import Knex from 'knex'
import { Kysely, MysqlDialect, PostgresDialect, type Transaction } from 'kysely'
import { createLedger } from 'onceonly'
import { drizzle } from 'onceonly/drizzle'
import { knex } from 'onceonly/knex'
import { kysely } from 'onceonly/kysely'
import { postgresStore } from 'onceonly/postgres'
import { prisma } from 'onceonly/prisma'
import { sequelize } from 'onceonly/sequelize'
import { typeorm } from 'onceonly/typeorm'
import type { Pool } from 'pg'
import { Sequelize } from 'sequelize'
import { DataSource } from 'typeorm'

interface Tables {
  orders: { name: string }
}

/** Kysely on the pool of the store. */
export function kyselyOn(pool: Pool) {
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  return { db, transactions: kysely(db) }
}

/**
 * What a transaction of Kysely that its user steers keeps of three calls: before a savepoint, undone with it, and after;
 * and what there is once all three were repeated.
 */
export async function withinSavepoints(pool: Pool): Promise<{ readonly kept: string; readonly repeated: string }> {
  const { db, transactions } = kyselyOn(pool)
  await pool.query('CREATE TABLE IF NOT EXISTS orders (name text PRIMARY KEY)')
  const store = postgresStore(pool)
  const ledger = createLedger({ store, transactions, background: false })
  const place = ledger.operation<string>({ name: 'order.savepoint', effect: 'transaction' })
  const order = (handle: Transaction<Tables>, name: string) =>
    place.within(handle, { tenant: 'acme', caller: 'web', key: name }, name, async ({ tx }) => {
      await tx.insertInto('orders').values({ name }).execute()
    })
  const trx = await db.startTransaction().execute()
  await order(trx, 'before')
  const inside = await trx.savepoint('user_point').execute()
  await order(inside, 'undone')
  const back = await inside.rollbackToSavepoint('user_point').execute()
  await order(back, 'after')
  await trx.commit().execute()
  const names = async () => {
    const rows = await db.selectFrom('orders').select('name').orderBy('name').execute()
    return rows.map(({ name }) => name).join(' ')
  }
  const kept = await names()
  for (const name of ['before', 'undone', 'after']) await db.transaction().execute((again) => order(again, name))
  const repeated = await names()
  await ledger.stop()
  await store.stop()
  return { kept, repeated }
}

/** Each entry, given a transaction that is open already in place of the database. */
export async function giveOpenTransactions(
  pool: Pool,
  url: string,
  given: (name: string, wrong: () => unknown) => void,
) {
  const { db } = kyselyOn(pool)
  await db.transaction().execute(async (trx) => given('kysely', () => kysely(trx)))
  await drizzleOn(pool).transaction(async (tx) => given('drizzle', () => drizzle(tx)))
  const onKnex = Knex({ client: 'pg', connection: url })
  await onKnex.transaction(async (trx) => given('knex', () => knex(trx)))
  await onKnex.destroy()
}

/** Each entry, given a database that it has no transactions on. */
export async function giveOtherDatabases(given: (name: string, wrong: () => unknown) => void): Promise<void> {
  const onMysql = new Kysely<Tables>({
    dialect: new MysqlDialect({ pool: () => Promise.reject(new Error('is never opened')) }),
  })
  given('kysely', () => kysely(onMysql))
  given('drizzle', () => drizzle(drizzleOnSqlite(async () => ({ rows: [] })) as never))
  given('knex', () => knex(Knex({ client: 'mysql2' })))
  given('typeorm', () => typeorm(new DataSource({ type: 'better-sqlite3', database: 'never.db' })))
  const { PrismaClient } = await import('./node_modules/.prisma/on-sqlite/index.js' as string)
  const adapter = {
    provider: 'sqlite',
    adapterName: 'none',
    connect: () => Promise.reject(new Error('is never opened')),
  }
  given('prisma', () => prisma(new PrismaClient({ adapter })))
  // Its dialect looks for the driver when it is made.
  given('sequelize', () => sequelize(new Sequelize('sqlite::memory:', { dialectModule: { verbose: () => ({}) } })))
}

/** An effect that releases the connection under it, and what is left of its row. */
export async function releaseInside(pool: Pool, url: string) {
  await pool.query('CREATE TABLE IF NOT EXISTS orders (name text PRIMARY KEY)')
  const source = await new DataSource({ type: 'postgres', url, poolSize: 1 }).initialize()
  const store = postgresStore(pool)
  const ledger = createLedger({ store, transactions: typeorm(source), background: false })
  const place = ledger.operation<string>({ name: 'order.release', effect: 'transaction' })
  const who = { tenant: 'acme', caller: 'web', key: 'release' }
  const error: unknown = await place
    .run(who, 'a', async ({ tx }) => {
      await tx.query(`INSERT INTO orders VALUES ('released')`)
      await tx.queryRunner?.release()
    })
    .catch((thrown: unknown) => thrown)
  // On the same connection, as the next borrower has it.
  const rows: unknown[] = await source.query(`SELECT 1 FROM orders WHERE name = 'released'`)
  await ledger.stop()
  await store.stop()
  await source.destroy()
  return { error, orders: rows.length }
}
