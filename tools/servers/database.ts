import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import { DATABASE_BOUND_MS } from './limits.ts'

export interface Database {
  readonly url: string
  /** Removes the database, and ends all connections to it. */
  drop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** A fresh, empty database for one test file or case, on a server that many share. */
export async function createDatabase(adminUrl: string): Promise<Database> {
  const name = `onceonly_test_${randomBytes(8).toString('hex')}`
  // template0 never has a session in it, so concurrent creations do not disturb each other as with template1.
  await runAlone(adminUrl, `CREATE DATABASE ${name} TEMPLATE template0`)
  const url = new URL(adminUrl)
  url.pathname = `/${name}`
  const drop = () => runAlone(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
  return { url: url.href, drop, [Symbol.asyncDispose]: drop }
}

/** Neither statement may run in a transaction, and both are rare: a connection for each keeps nothing open. */
async function runAlone(url: string, statement: string): Promise<void> {
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: DATABASE_BOUND_MS,
    query_timeout: DATABASE_BOUND_MS,
  })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
