import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createLedger, final, type SqlStore } from 'onceonly'
import { createOutbox } from 'onceonly/outbox'
import { postgresStore } from 'onceonly/postgres'
import { sqliteStore } from 'onceonly/sqlite'
import { Pool } from 'pg'
import { createDatabase } from '../../../../tools/servers/database.ts'

const postgresUrl = process.env['ONCEONLY_TEST_POSTGRES_URL']
const page = await readFile(join(import.meta.dirname, '../../../../docs/operating/sql.md'), 'utf8')
/** Every documented query under its question. */
const queries = [...page.matchAll(/^## (.+)$\s+```sql\n([\s\S]+?)```/gm)].map(([, question = '', sql = '']) => {
  return { question, sql: sql.trim() }
})

type Row = Readonly<Record<string, unknown>>

async function check(store: SqlStore, ask: (sql: string) => Promise<readonly Row[]>): Promise<void> {
  const once = createLedger({ store, background: false })
  const outbox = createOutbox({ ledger: once })
  await outbox.prepare()
  const pay = once.operation<number>({ name: 'pay', effect: 'external' })
  const who = (key: string) => ({ tenant: 'acme', caller: 'shop', key })
  await pay.run(who('order-4711'), 7, async (attempt) => {
    attempt.note({ calls: 2, provider: 'bank', reference: 'b-1', taken: 'pay_0' })
    await attempt.attach({ type: 'payment', id: 'pay_1' })
    return 'paid'
  })
  await pay.execute(who('order-4711'), 8, async () => 'never')
  await pay.execute(who('refused'), 1, () => Promise.reject(final(Object.assign(new Error('no'), { code: '23505' }))))
  await pay.execute(who('lost'), 1, () => Promise.reject(Object.assign(new Error('cut'), { code: 'no_answer' })))
  const held = await pay.claim(who('held'), 1)
  assert.equal(held.kind, 'first_attempt')
  await once.busiest()

  const answers = new Map<string, readonly Row[]>()
  for (const { question, sql } of queries) answers.set(question, await ask(sql))
  assert.equal(answers.size, 10, 'ten questions')
  const first = (question: string) => answers.get(question)?.[0] ?? {}
  assert.deepEqual(
    { ...first('Which operation, tenant and caller?') },
    { operation: 'pay', tenant: 'acme', caller: 'shop', status: 'succeeded' },
  )
  assert.equal(first('Which key?')['key'], 'order-4711')
  assert.equal(Number(first('The same payload, or another?')['conflicts']), 1)
  assert.match(String(first('Did a record exist?')['record']), /^[0-9a-f]{32}$/)
  const state = first('Which state, or expired?')
  assert.equal(state['locked_until'], null)
  const expires = state['expires_at']
  const at = expires instanceof Date ? expires : new Date(String(expires))
  assert.ok(at.getTime() > Date.now(), `${String(expires)} is a timestamp`)
  assert.equal(first('Was business uniqueness violated?')['taken'], 'pay_0')
  assert.deepEqual(answers.get('Was an outbox event doubled?'), [])
  const calls = first('Did a provider get two calls?')
  assert.deepEqual([calls['provider'], calls['reference'], Number(calls['calls'])], ['bank', 'b-1', 2])
  assert.equal(Number(first("A retry storm, or a gateway's retry?")['repeats']), 1)
  const unknown = first('What is unknown, and since when?')
  assert.deepEqual([unknown['key'], /no_answer/.test(String(unknown['failure']))], ['lost', true])
  const [locked] = await ask(`SELECT status, locked_until FROM onceonly_records_view WHERE key = 'held'`)
  assert.deepEqual([locked?.['status'], locked?.['locked_until'] === null], ['running', false])
  await once.stop()
}

test('the documented queries run on SQLite', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-sql-'))
  const store = sqliteStore(join(folder, 'store.db'))
  await check(store, (sql) => store.sql.query(sql))
  await store.stop()
  await rm(folder, { recursive: true, force: true })
})

test('the documented queries run on PostgreSQL, in the schema of the store', {
  skip: postgresUrl === undefined ? 'no PostgreSQL server' : false,
}, async () => {
  const database = await createDatabase(postgresUrl ?? '')
  const pool = new Pool({ connectionString: database.url, max: 6 })
  const store = postgresStore(pool, { schema: 'Own "schema' })
  // As an operator queries: another connection, with the schema in its search path.
  const client = await pool.connect()
  await check(store, async (sql) => {
    await client.query(`SET search_path = "Own ""schema"`)
    return (await client.query(sql)).rows as Row[]
  })
  const { rows } = await client.query(`SELECT schemaname FROM pg_views WHERE viewname = 'onceonly_records_view'`)
  assert.deepEqual(rows, [{ schemaname: 'Own "schema' }])
  client.release(true)
  await store.stop()
  await pool.end()
  await database.drop()
})
