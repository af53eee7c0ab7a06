import { drizzle as drizzleOn } from 'drizzle-orm/node-postgres'
import Knex from 'knex'
import { Kysely, PostgresDialect } from 'kysely'
import { drizzle } from 'onceonly/drizzle'
import { knex } from 'onceonly/knex'
import { kysely } from 'onceonly/kysely'
import type { Pool } from 'pg'

interface Tables {
  orders: { name: string }
}

/** Kysely on the pool of the store. */
export function kyselyOn(pool: Pool) {
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  return { db, transactions: kysely(db) }
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
