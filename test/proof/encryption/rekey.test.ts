import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { after, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import type { Encryption, Store } from 'onceonly'
import { createLedger, encryptionFromEnv } from 'onceonly'
import { mariadbStore } from 'onceonly/mariadb'
import { postgresStore } from 'onceonly/postgres'
import { redisStore } from 'onceonly/redis'
import { createEngine, defineRun } from 'onceonly/run'
import { sqliteStore } from 'onceonly/sqlite'
import { Pool } from 'pg'
import { until } from '../../../src/testing/until.ts'
import { createDatabase as createPostgres } from '../../../tools/servers/database.ts'
import { quietLedger } from '../../support/quiet-ledger.ts'
import { createDatabase as createMariadb } from '../../support/stores/mariadb/database.ts'

const [k1, k2] = [randomBytes(32), randomBytes(32)]
const before: Encryption = { keys: { k1 } }
const both: Encryption = { keys: { k1, k2 }, writeWith: 'k2' }
const later: Encryption = { keys: { k2 } }
const env = {
  ONCEONLY_ENCRYPTION_KEYS: `k1=${k1.toString('base64')},k2=${k2.toString('base64')}`,
  ONCEONLY_ENCRYPTION_WRITE_WITH: 'k2',
}
const CALL = { timeoutMs: 30_000 }
const keysOf = (count: number) => Array.from({ length: count }, (_, n) => `key-${n}`)

async function payAll(store: Store, keys: readonly string[]): Promise<number> {
  const ledger = createLedger({ store, background: false })
  const pay = ledger.operation<number>({ name: 'pay', effect: 'external' })
  let ran = 0
  const one = (key: string) =>
    pay.run({ tenant: 'acme', caller: 'ann', key }, 1, () => {
      ran++
      return `receipt of ${key}`
    })
  for (const value of await Promise.all(keys.map(one))) assert.match(value, /^receipt of key-/)
  await ledger.stop()
  return ran
}

function rekey(file: string, more: NodeJS.ProcessEnv = {}) {
  const program = resolve(import.meta.dirname, '../../../src/admin/cli/main.ts')
  const args = ['--conditions=onceonly-source', program, 'rekey', '--yes', '--json', '--store', file]
  return spawn(process.execPath, args, { env: { ...process.env, ...env, ...more }, stdio: ['ignore', 'pipe', 'pipe'] })
}

/** How many records are under a key, past every interface. */
function underKey(file: string, id: string): number {
  const db = new DatabaseSync(file, { readOnly: true })
  const row = db.prepare(`SELECT count(*) AS n FROM onceonly_records WHERE outcome LIKE ?`).get(`%.${id}.%`)
  db.close()
  return Number(row?.['n'])
}

test('rekey that is killed in the middle continues, beside a server that works on', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-rekey-'))
  after(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'once.db')
  const keys = keysOf(1_000)
  const old = sqliteStore(file, { encryption: before })
  assert.equal(await payAll(old, keys), keys.length)
  await old.stop()

  const killed = rekey(file)
  await until(
    'a part is encrypted anew',
    async () => underKey(file, 'k2'),
    (count) => count > 0,
  )
  const closed = once(killed, 'close')
  killed.kill('SIGKILL')
  await closed
  const left = underKey(file, 'k1')
  assert.ok(left > 0, 'it was killed in the middle')

  // A server beside it, with the same keys.
  const server = sqliteStore(file, { encryption: both })
  const again = rekey(file)
  const over = Promise.all([text(again.stdout), text(again.stderr), once(again, 'close')])
  assert.equal(await payAll(server, keys), 0)
  const [out, err, [code]] = await over
  assert.equal(code, 0, err)
  const answer = JSON.parse(out) as { changed: number; removable: string[] }
  assert.deepEqual([answer.changed, answer.removable], [left, ['k1']])
  assert.equal(underKey(file, 'k1'), 0)
  await server.stop()
  const store = sqliteStore(file, { encryption: later })
  assert.equal(await payAll(store, keys), 0)
  await store.stop()
})

async function rekeyAll(store: Store): Promise<{ changed: number; left: number }> {
  assert.ok(store.encryption)
  let [changed, left] = [0, 0]
  for (let cursor: string | null = null; ; ) {
    const step = await store.encryption.rekey(cursor, 10, CALL)
    changed += step.changed
    left += step.left
    cursor = step.cursor
    if (cursor === null) return { changed, left }
  }
}

const postgres = process.env['ONCEONLY_TEST_POSTGRES_URL']
const redis = process.env['ONCEONLY_TEST_REDIS_URL']
const mariadb = process.env['ONCEONLY_TEST_MARIADB_URL']
if (postgres === undefined || redis === undefined || mariadb === undefined) {
  if (process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_…_URL is not set')
  test('servers', { skip: 'no servers' }, () => {})
} else {
  const stores: Readonly<Record<string, () => Promise<(encryption?: Encryption) => Store>>> = {
    async PostgreSQL() {
      const database = await createPostgres(postgres)
      const pool = new Pool({ connectionString: database.url, max: 8 })
      after(async () => {
        await pool.end()
        await database.drop()
      })
      return (encryption) => postgresStore(pool, encryption && { encryption })
    },
    async Redis() {
      const client = new Redis(redis)
      after(() => client.disconnect())
      const prefix = `rekey:${process.pid}`
      return (encryption) => redisStore(client, { prefix, ...(encryption && { encryption }) })
    },
    async MariaDB() {
      const database = await createMariadb(mariadb)
      after(() => database.drop())
      return (encryption) => mariadbStore(database.pool(), encryption && { encryption })
    },
  }
  for (const [name, prepare] of Object.entries(stores)) {
    describe(name, () => {
      test('from plain to one key to another, and nothing runs again', async () => {
        const open = await prepare()
        const keys = keysOf(25)
        const steps: readonly (Encryption | undefined)[] = [undefined, { ...before, allowPlain: true }, both, later]
        for (const [at, encryption] of steps.entries()) {
          const store = open(encryption)
          assert.equal(await payAll(store, keys), at === 0 ? keys.length : 0, `step ${at}`)
          if (encryption !== undefined) {
            const { left } = await rekeyAll(store)
            assert.equal(left, 0)
            assert.equal(await store.encryption?.finish(CALL), true)
            assert.equal(await payAll(store, keys), 0, `after step ${at}`)
          }
          await store.stop()
        }
        const wrong = open(before)
        await assert.rejects(payAll(wrong, keys), { code: 'encryption_key' })
        await wrong.stop()
      })
    })
  }
}

test('inputs, results and steps of runs come under the new key, and an old plain run continues', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-rekey-runs-'))
  after(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'once.db')
  const order = defineRun('order', async (run, { phone }: { phone: string }) => {
    const said = await run.step('call', () => `called ${phone}`)
    return `${said} twice`
  })
  const runOn = async (encryption: Encryption | undefined, runId: string) => {
    const store = sqliteStore(file, encryption && { encryption })
    const engine = await createEngine({ ledger: quietLedger(store), runs: [order] })
    const handle = await engine.start(order, { runId, input: { phone: '+15550009999' } })
    const result = await handle.result()
    await engine.stop()
    return { store, result }
  }
  for (const encryption of [undefined, { ...before, allowPlain: true }]) {
    const { store, result } = await runOn(encryption, 'run-1')
    assert.equal(result, 'called +15550009999 twice')
    if (encryption !== undefined) {
      await rekeyAll(store)
      assert.equal(await store.encryption?.finish(CALL), true)
      const [row] = await store.sql.query('select input from onceonly_runs')
      assert.match(String(row?.['input']), /15550009999/)
    }
    await store.stop()
  }
  const db = new DatabaseSync(file, { readOnly: true })
  const rows = [
    ...db.prepare('SELECT * FROM onceonly_runs').all(),
    ...db.prepare('SELECT * FROM onceonly_run_steps').all(),
  ]
  db.close()
  assert.equal(JSON.stringify(rows).includes('15550009999'), false)
  assert.ok(encryptionFromEnv({ ...env }) !== undefined)
})
