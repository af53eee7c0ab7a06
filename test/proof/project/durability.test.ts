import assert from 'node:assert/strict'
import { test } from 'node:test'
import { postgresStore } from 'onceonly/postgres'
import { Pool } from 'pg'
import { createDatabase } from '../../../tools/servers/database.ts'

const url = process.env['ONCEONLY_TEST_POSTGRES_URL']
if (url === undefined && process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_POSTGRES_URL is not set')

/** An unlogged table is fast, and empty after a crash of the server: a record that was acknowledged would be gone. */
test('every table of the PostgreSQL store survives a crash of the server', {
  skip: url === undefined ? 'no PostgreSQL server' : false,
}, async () => {
  await using database = await createDatabase(url as string)
  const pool = new Pool({ connectionString: database.url, max: 5 })
  const store = postgresStore(pool)
  await store.clock.now({ timeoutMs: 60_000 })
  const kinds = await store.sql.query<{ relname: string; relpersistence: string }>(
    "select relname, relpersistence from pg_class where relname like 'onceonly%' and relkind in ('r', 'S')",
  )
  assert.ok(kinds.length >= 4, 'there are tables to look at')
  assert.deepEqual(
    kinds.filter(({ relpersistence }) => relpersistence !== 'p'),
    [],
  )
  await store.stop()
  await pool.end()
})
