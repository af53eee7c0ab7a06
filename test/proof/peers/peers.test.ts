import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import ts from 'typescript'
import { until } from '../../../src/testing/until.ts'
import { capture, root } from '../../../tools/command.ts'
import { createDatabase } from '../../../tools/servers/database.ts'
import { installOwnPackages } from '../../support/own-packages.ts'

/** The programs of the comparison page and of the migration guides: compiled, run, killed, and counted. */
const app = join(import.meta.dirname, 'app')
const postgresUrl = process.env['ONCEONLY_TEST_POSTGRES_URL'] ?? ''
const missing = await installOwnPackages(app)
const skip = missing === false && postgresUrl === '' ? 'no PostgreSQL server' : missing

const folder = mkdtempSync(join(tmpdir(), 'onceonly-peers-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const programs = globSync('*.ts', { cwd: app })
/** Decorators are no syntax that Node strips, so programs of Nest are compiled, as their users compile them. */
const fileOf = (name: string) => `${name}.${name.startsWith('nest-') ? 'js' : 'ts'}`
const decorators = { experimentalDecorators: true, emitDecoratorMetadata: true }
if (skip === false) {
  for (const name of programs) {
    cpSync(join(app, name), join(folder, name))
    if (name.startsWith('nest-')) writeFileSync(join(folder, name.replace(/ts$/, 'js')), compiled(name))
  }
  symlinkSync(join(app, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
}

function compiled(name: string): string {
  const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, ...decorators }
  return ts.transpileModule(readFileSync(join(app, name), 'utf8'), { fileName: name, compilerOptions }).outputText
}

interface Order {
  readonly status: number
  readonly body: unknown
}

/** One application, as a process on a database of its own. */
async function opened(name: string, work: (shop: Shop) => Promise<void>): Promise<void> {
  const database = await createDatabase(postgresUrl)
  const client = await connected(database.url)
  await client.query('create table orders (id int primary key generated always as identity, item text not null)')
  await client.query(
    'create table request_keys (caller text, key text, digest text, status int, body jsonb, primary key (caller, key))',
  )
  const children = new Set<ReturnType<typeof spawn>>()
  const start = async (...flags: readonly string[]) => {
    const args = ['--conditions=onceonly-source', 'serve.ts', fileOf(name), database.url, ...flags]
    const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
    children.add(child)
    let complaint = ''
    child.stderr.on('data', (chunk) => (complaint += String(chunk)))
    const ended = once(child, 'close').then(() => assert.fail(`${name} did not start: ${complaint}`))
    const [port] = (await Promise.race([once(child.stdout, 'data'), ended])) as [Buffer]
    ended.catch(() => undefined)
    return async (key: string, item: string): Promise<Order> => {
      const response = await fetch(`http://127.0.0.1:${String(port).trim()}/orders`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': key, 'x-user': 'ann' },
        body: JSON.stringify({ item }),
      })
      return { status: response.status, body: await response.json().catch(() => null) }
    }
  }
  try {
    await work({
      start,
      client,
      url: database.url,
      rows: async () => (await client.query('select id from orders')).rowCount ?? 0,
    })
  } finally {
    for (const child of children) {
      const closed = child.exitCode === null && child.signalCode === null ? once(child, 'close') : null
      child.kill('SIGKILL')
      await closed
    }
    await client.end()
    await database.drop()
  }
}

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return client
}

interface Shop {
  start(...flags: readonly string[]): Promise<(key: string, item: string) => Promise<Order>>
  readonly client: pg.Client
  readonly url: string
  rows(): Promise<number>
}

const WAITING = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query ~* 'insert into "?orders'`

const peers = [
  { name: 'ours', twin: 201, other: 409, rowsAfterCrash: 1 },
  { name: 'ours-fastify', twin: 201, other: 409, rowsAfterCrash: 1 },
  { name: 'nest-ours', twin: 201, other: 409, rowsAfterCrash: 1 },
  { name: 'home-made', twin: 201, other: 409, rowsAfterCrash: 1 },
  { name: 'home-made-fastify', twin: 201, other: 409, rowsAfterCrash: 1 },
  { name: 'nest-home-made', twin: 201, other: 409, rowsAfterCrash: 1 },
  // It does not compare what a key is used for.
  { name: 'dbos', twin: 201, other: 201, rowsAfterCrash: 1 },
  { name: 'express-idempotency', twin: 409, other: 417, rowsAfterCrash: 2 },
  { name: 'node-idempotency', twin: 409, other: 409, rowsAfterCrash: 2 },
  { name: 'nest-node-idempotency', twin: 409, other: 422, rowsAfterCrash: 2 },
] as const

for (const { name, twin, other, rowsAfterCrash } of peers) {
  test(`${name}: a retry, a twin, another body`, { skip }, async () => {
    await opened(name, async ({ start, client, url, rows }) => {
      const ask = await start()
      assert.deepEqual(await ask('k', 'book'), { status: 201, body: { id: 1 } })
      assert.deepEqual(await ask('k', 'book'), { status: 201, body: { id: 1 } })
      assert.equal((await ask('k', 'boat')).status, other)
      // The first one waits for the table while its twin comes.
      const locked = await connected(url)
      await locked.query('begin; lock table orders in exclusive mode')
      const first = ask('twin', 'book')
      await until(
        'the insert waits',
        () => client.query(WAITING),
        ({ rowCount }) => rowCount === 1,
      )
      const second = ask('twin', 'book')
      if (twin === 409) assert.equal((await second).status, 409)
      await locked.query('commit')
      await locked.end()
      assert.deepEqual([(await first).status, (await second).status], [201, twin])
      assert.equal(await rows(), 2)
    })
  })

  test(`${name}: killed between the insert and its record, then retried`, { skip }, async () => {
    await opened(name, async ({ start, rows }) => {
      await assert.rejects((await start('die'))('k', 'book'))
      const retried = await (await start())('k', 'book')
      assert.equal(retried.status, 201)
      assert.equal(await rows(), rowsAfterCrash)
    })
  })
}

test('Powertools and a function: a retry, another payload', { skip }, async () => {
  const database = await createDatabase(postgresUrl)
  const pool = new pg.Pool({ connectionString: database.url })
  // The database is dropped before the last connection has been closed.
  pool.on('connect', (each) => void each.on('error', () => undefined))
  await pool.query('create table orders (id int primary key generated always as identity, item text not null)')
  const kept = new Map<unknown, string>()
  const client = {
    get: async (name: string) => kept.get(name) ?? null,
    // As Redis and Valkey do it: `NX` sets what is not there.
    set: async (name: unknown, value: unknown, options?: { readonly NX?: boolean }) => {
      if (options?.NX === true && kept.has(name)) return null
      kept.set(name, String(value))
      return 'OK'
    },
    del: async (names: readonly string[]) => names.filter((each) => kept.delete(each)).length,
  }
  for (const [name, id] of [
    ['powertools', 1],
    ['function', 2],
  ] as const) {
    const module = (await import(pathToFileURL(join(folder, `${name}.ts`)).href)) as {
      createHandler(pool: pg.Pool, cache: typeof client): (event: object) => Promise<{ readonly id: number }>
    }
    const handler = module.createHandler(pool, client)
    const event = { user: 'ann', key: 'k', item: 'book' }
    assert.equal((await handler(event)).id, id)
    assert.equal((await handler(event)).id, id)
    // Powertools compares payloads only where `payloadValidationJmesPath` says so.
    if (name === 'function') await assert.rejects(handler({ ...event, item: 'boat' }), /key/)
    assert.equal((await pool.query('select id from orders')).rowCount, id)
  }
  await pool.end()
  await database.drop()
})

test('the programs compile under `strict`', { skip }, async () => {
  const compilerOptions = {
    strict: true,
    target: 'es2022',
    lib: ['es2024', 'esnext.disposable', 'esnext.collection', 'esnext.iterator'],
    module: 'nodenext',
    types: ['node'],
    noEmit: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    customConditions: ['onceonly-source'],
    ...decorators,
  }
  const include = programs
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include }))
  const { ok, output } = await capture('tsc', ['-p', folder])
  assert.ok(ok, output)
})

test('the comparison page counts their lines', () => {
  const page = readFileSync(join(root, 'docs/comparison.md'), 'utf8')
  const linesOf = (path: string) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => line.trim() !== '' && !line.trim().startsWith('//')).length
  for (const { name } of peers) {
    const count = linesOf(join(app, `${name}.ts`))
    assert.match(
      page,
      new RegExp(`\\[[^\\]]+\\]\\([^)]*/${name}\\.ts\\) \\| ${count} \\|`),
      `${name} has ${count} lines`,
    )
  }
})
