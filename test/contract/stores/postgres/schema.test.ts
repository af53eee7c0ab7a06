import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { isOnceError } from '../../../../src/ledger/core/errors.ts'
import { postgresStore } from '../../../../src/ledger/stores/postgres/index.ts'
import {
  atEnd,
  CALL,
  claimIn,
  claimOf,
  databaseUrl,
  freshPool,
  freshSchema,
  openStore,
  settleOf,
  testPostgres,
} from '../../../support/stores/postgres/store.ts'

/** A process of its own that makes the tables and claims something. */
async function migrateElsewhere(url: string, schema: string, key: string): Promise<string> {
  const program = `
    import pg from 'pg'
    import { postgresStore } from ${JSON.stringify(join(import.meta.dirname, '../../../../src/ledger/stores/postgres/index.ts'))}
    const pool = new pg.Pool({ connectionString: ${JSON.stringify(url)}, max: 4 })
    const store = postgresStore(pool, { schema: ${JSON.stringify(schema)} })
    const applied = await store.claims.apply(${JSON.stringify(claimOf(key))}, { timeoutMs: 20_000 })
    console.log(applied.decision?.kind ?? applied.error)
    await store.stop()
    await pool.end()`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd: import.meta.dirname,
  })
  let printed = ''
  child.stdout.on('data', (chunk: Buffer) => {
    printed += chunk.toString()
  })
  await once(child, 'close')
  return printed.trim()
}

testPostgres('four processes may make the tables at once', async (t) => {
  const [url, schema] = [await databaseUrl(), freshSchema()]
  const answers = await Promise.all(['a', 'a', 'b', 'b'].map((key) => migrateElsewhere(url, schema, key)))
  assert.deepEqual(answers.toSorted(), ['first_attempt', 'first_attempt', 'in_progress', 'in_progress'])
  const pool = await freshPool(t)
  const { rows } = await pool.query(`SELECT room, version FROM ${schema}.onceonly_migrations`)
  assert.deepEqual(rows, [{ room: 'ledger', version: 1 }])
})

testPostgres('code that is older than the tables allow refuses to run on them', async (t) => {
  const schema = freshSchema()
  await claimIn(await openStore(t, { schema }), 'a')
  const pool = await freshPool(t)
  const add = `INSERT INTO ${schema}.onceonly_migrations (room, version, oldest_code) VALUES ('ledger', $1, $2)`
  // A newer version that allows this code does not disturb it: a rolling deploy.
  await pool.query(add, [2, 1])
  await claimIn(await openStore(t, { schema }), 'b')
  await pool.query(add, [3, 3])
  const refused = openStore(t, { schema }).then((store) => claimIn(store, 'c'))
  await assert.rejects(refused, (error) => isOnceError(error, 'schema_too_new') && error.details['oldestCode'] === 3)
})

testPostgres('the tables live in the schema that was named, or where the search path leads', async (t) => {
  const pool = await freshPool(t)
  const strange = 'My "own" schema; DROP TABLE x'
  await claimIn(await openStore(t, { schema: strange }), 'a')
  const named = await pool.query('SELECT schemaname FROM pg_tables WHERE tablename = $1', ['onceonly_records'])
  assert.ok(named.rows.some(({ schemaname }) => schemaname === strange))
  const schema = freshSchema()
  await pool.query(`CREATE SCHEMA ${schema}`)
  const own = await freshPool(t, { options: `-c search_path=${schema}` })
  const store = postgresStore(own)
  await claimIn(store, 'a')
  await store.stop()
  const { rows } = await pool.query(`SELECT count(*)::int AS count FROM ${schema}.onceonly_records`)
  assert.deepEqual(rows, [{ count: 1 }])
})

testPostgres('tables that were dropped under a running store are made anew', async (t) => {
  const schema = freshSchema()
  const store = await openStore(t, { schema })
  const lost = await claimIn(store, 'a')
  const pool = await freshPool(t)
  await pool.query(`DROP SCHEMA ${schema} CASCADE`)
  await assert.rejects(
    claimIn(store, 'b'),
    (error) => isOnceError(error, 'store_unavailable') && error.applied === 'no',
  )
  const later = await claimIn(store, 'b')
  // Fences keep growing after the loss, and a settle of the lost claim writes its record anew.
  assert.ok(later.fence > lost.fence)
  const settled = await store.claims.apply(settleOf(lost), CALL)
  assert.ok(settled !== undefined && 'decision' in settled)
  assert.deepEqual(settled.decision, { kind: 'applied', recordLost: true })
})

testPostgres('rooms keep tables of their own beside ours, and may be migrated from many stores at once', async (t) => {
  const schema = freshSchema()
  const stores = await Promise.all([openStore(t, { schema }), openStore(t, { schema }), openStore(t, { schema })])
  const up = () => ['CREATE TABLE onceonly_room (n bigint)', 'INSERT INTO onceonly_room VALUES (1)']
  await Promise.all(stores.map((store) => store.sql.migrate('room', [{ version: 1, oldestCode: 1, up }])))
  const [store] = stores
  const question = "SELECT n, '?' AS mark FROM onceonly_room WHERE n = ?"
  assert.deepEqual(await store.sql.query(question, [1n]), [{ n: '1', mark: '?' }])
  // Errors of a room's own SQL are the room's to read.
  await assert.rejects(store.sql.query('SELECT nothing'), (error: Error & { code?: string }) => error.code === '42703')
  for (const room of ['ledger', ' ']) {
    await assert.rejects(store.sql.migrate(room, []), (error) => isOnceError(error, 'bad_option'))
  }
})

testPostgres('options that cannot work are refused at once', async (t) => {
  const small = await freshPool(t, { max: 2 })
  assert.throws(
    () => postgresStore(small, { poolMode: 'session' }),
    (error) => isOnceError(error, 'bad_option'),
  )
  const pool = await freshPool(t)
  for (const schema of ['', 'x'.repeat(64), 'nul \0']) {
    assert.throws(
      () => postgresStore(pool, { schema }),
      (error) => isOnceError(error, 'bad_option'),
    )
  }
  const store = postgresStore(pool, { schema: freshSchema(), testClock: false })
  await assert.rejects(store.clock.advance(1, CALL), (error) => isOnceError(error, 'bad_option'))
  await assert.rejects(store.upkeep.sweep('not ours', 1, CALL), (error) => isOnceError(error, 'bad_option'))
  await store.stop()
})

testPostgres('a stopped store refuses calls, gives its clients back, and may be stopped twice', async (t) => {
  const pool = await freshPool(t)
  const store = await openStore(t, {}, pool)
  const wakes: unknown[] = []
  await store.claims.watch((ids) => wakes.push(ids)).ready
  const underWay = claimIn(store, 'a')
  await Promise.all([store.stop(), store.stop()])
  assert.equal((await underWay).attempt, 1)
  assert.equal(pool.totalCount - pool.idleCount, 0)
  for (const call of [
    () => claimIn(store, 'b'),
    () => store.clock.now(CALL),
    () => store.transactions.run(async () => 1, { ...CALL, lockMs: 1, refuseTwinOf: null }),
  ]) {
    await assert.rejects(call(), (error) => isOnceError(error, 'stopped'))
  }
})

testPostgres('a store that only checks changes no schema, and works where the tables are', async (t) => {
  const schema = freshSchema()
  const tooOld = (error: unknown) => isOnceError(error, 'schema_too_old')
  await assert.rejects(
    openStore(t, { schema, migrate: 'check' }).then((store) => claimIn(store, 'a')),
    tooOld,
  )
  const pool = await freshPool(t)
  const { rows } = await pool.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema])
  assert.deepEqual(rows, [])
  await claimIn(await openStore(t, { schema }), 'b')
  await claimIn(await openStore(t, { schema, migrate: 'check' }), 'c')
})

testPostgres(
  'a missing privilege is final, refused writes may end with a failover, and both say what to do',
  async (t) => {
    const schema = freshSchema()
    await claimIn(await openStore(t, { schema }), 'a')
    const pool = await freshPool(t)
    const role = `reader_${schema}`
    await pool.query(`CREATE ROLE ${role}`)
    atEnd(t, async () => void (await pool.query(`DROP ROLE ${role}`)))
    const claimAs = async (options: string) =>
      claimIn(await openStore(t, { schema }, await freshPool(t, { options })), 'b').catch((error: unknown) => error)
    const forbidden = await claimAs(`-c role=${role}`)
    assert.ok(isOnceError(forbidden, 'store_unavailable') && !forbidden.retryable, String(forbidden))
    assert.match(forbidden.message, /permission denied .* Grant that to the user as which the store connects/)
    const readOnly = await claimAs('-c default_transaction_read_only=on')
    assert.ok(isOnceError(readOnly, 'store_unavailable') && readOnly.retryable, String(readOnly))
    assert.match(readOnly.message, /25006.* Connect the store to a server that takes writes/)
  },
)
