import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe } from 'node:test'
import type { SqlTx, TransactionalStore } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import { sqliteStore } from 'onceonly/sqlite'
import { Client, Pool } from 'pg'
import type { FieldError } from '../../../service/http/problem.ts'
import type { Message } from '../../../service/messages/message.ts'
import { createDatabase } from '../../../tools/servers/database.ts'
import { start } from './service.ts'

const operatorToken = 'operator-token-of-tests'
const demoKey = 'demo-key-of-tests'
const postgresUrl = process.env['ONCEONLY_TEST_POSTGRES_URL']
if (postgresUrl === undefined && process.env['CI'] === 'true') throw new Error('ONCEONLY_TEST_POSTGRES_URL is not set')

export type PlaceName = 'sqlite' | 'postgres'
const places: readonly { readonly name: PlaceName; readonly skip: string | false }[] = [
  { name: 'sqlite', skip: false },
  { name: 'postgres', skip: postgresUrl === undefined ? 'no PostgreSQL server' : false },
]

/** The same tests on every store, each store at its own pace; the tests of one store share its time, one by one. */
export function onEveryPlace(title: string, body: (place: PlaceName) => void): void {
  describe(title, { concurrency: true }, () => {
    for (const { name, skip } of places) describe(`on ${name}`, { skip, concurrency: false }, () => body(name))
  })
}

/** An answer that has arrived whole; which members its body has depends on the status. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: {
    readonly success?: boolean
    readonly status?: string | number
    readonly duplicateOnly?: boolean
    readonly duplicateMessage?: string
    readonly message?: Message | null
    readonly leadId?: string | null
    readonly ghlContactId?: string | null
    readonly hsPortalId?: string | null
    readonly type?: string
    readonly retryable?: boolean
    readonly errors?: readonly FieldError[]
    readonly [more: string]: unknown
  }
}

export interface Asked {
  readonly key?: string
  readonly apiKey?: string
}

export interface TestServer {
  readonly url: string
  readonly pid: number
  /** Of the demo workspace. */
  readonly apiKey: string
  readonly running: boolean
  /** The lines that it printed. */
  readonly lines: readonly string[]
  /** What it wrote to standard error. */
  readonly errors: readonly string[]
  events(name: string): readonly Readonly<Record<string, unknown>>[]
  send(body: unknown, asked?: Asked): Promise<Answer>
  get(path: string, asked?: Asked): Promise<Answer>
  post(path: string, body: unknown, asked?: Asked): Promise<Answer>
  admin(method: string, path: string, body?: unknown): Promise<Answer>
  /** Any path, with the operator's token. */
  asOperator(method: string, path: string, body?: unknown): Promise<Answer>
  /** A request of the console's pages. */
  console(path: string): Promise<Answer>
  /** As a crash would: at once, in the middle of whatever it does. */
  kill(): Promise<void>
  stop(): Promise<void>
}

/** Server processes on one store, and the store itself, as one more process would hold it. */
export interface Cluster extends AsyncDisposable {
  readonly store: TransactionalStore<SqlTx>
  /** Of its store, as the command line takes it. */
  readonly address: string
  /** Where its servers keep files. */
  readonly folder: string
  /** Those that still run. */
  readonly servers: readonly TestServer[]
  add(env?: Env): Promise<TestServer>
  /** The time of all of them. */
  now(): Promise<number>
  /** Moves it. */
  advance(ms: number): Promise<void>
  sql<Row = Readonly<Record<string, unknown>>>(text: string): Promise<readonly Row[]>
  /** Makes the database unreachable, on PostgreSQL, until the returned function is called. */
  cutOff(): Promise<() => Promise<void>>
}

const CALL = { timeoutMs: 60_000 }

type Env = Readonly<Record<string, string>>

export async function openCluster(place: PlaceName, options: { processes?: number; env?: Env } = {}): Promise<Cluster> {
  const data = await mkdtemp(join(tmpdir(), 'onceonly-cluster-'))
  const database = place === 'postgres' ? await createDatabase(postgresUrl ?? '') : null
  const pool = database === null ? null : new Pool({ connectionString: database.url, max: 5 })
  pool?.on('error', () => {})
  const store =
    pool === null
      ? sqliteStore(join(data, 'onceonly.db'), { testClock: true })
      : postgresStore(pool, { testClock: true })
  const servers: TestServer[] = []
  const add = async (env: Env = {}) => {
    const server = await startServer({
      ONCEONLY_DATA: data,
      ONCEONLY_STORE: database?.url ?? '',
      ...options.env,
      ...env,
    })
    servers.push(server)
    return server
  }
  await Promise.all(Array.from({ length: options.processes ?? 1 }, () => add()))
  return {
    store,
    address: database?.url ?? join(data, 'onceonly.db'),
    folder: data,
    get servers() {
      return servers.filter((server) => server.running)
    },
    add,
    now: () => store.clock.now(CALL),
    advance: (ms) => store.clock.advance(ms, CALL),
    sql: (text) => store.sql.query(text),
    cutOff: () => cutOff(database?.url ?? ''),
    async [Symbol.asyncDispose]() {
      await Promise.all(servers.map((server) => server.stop()))
      await store.stop()
      await pool?.end()
      await database?.drop()
      await rm(data, { recursive: true, force: true })
    },
  }
}

async function cutOff(url: string): Promise<() => Promise<void>> {
  const name = new URL(url).pathname.slice(1)
  const asAdmin = async (...statements: string[]) => {
    const client = new Client({ connectionString: postgresUrl })
    await client.connect()
    for (const statement of statements) await client.query(statement)
    await client.end()
  }
  await asAdmin(
    `alter database ${name} with allow_connections false`,
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
  )
  return () => asAdmin(`alter database ${name} with allow_connections true`)
}

async function startServer(env: Env): Promise<TestServer> {
  const child = start({ ONCEONLY_TEST_CLOCK: '1', ONCEONLY_OPERATOR_TOKEN: operatorToken, ...env })
  const lines: string[] = []
  const errors: string[] = []
  const url = await listening(child, lines, errors)
  const ask = async (method: string, path: string, body: unknown, bearer: string, key?: string): Promise<Answer> => {
    const response = await fetch(url + path, {
      method,
      headers: {
        authorization: `Bearer ${bearer}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const parsed = text === '' ? {} : (JSON.parse(text) as Answer['body'])
    return { status: response.status, headers: response.headers, text, body: parsed }
  }
  let running = true
  const end = async (signal: 'SIGKILL' | 'SIGTERM') => {
    if (!running) return
    running = false
    // Not its exit: what it printed last is read by then, too.
    const over = once(child, 'close')
    child.kill(signal)
    await over
  }
  return {
    url,
    pid: child.pid ?? 0,
    apiKey: demoKey,
    get running() {
      return running
    },
    lines,
    errors,
    events: (name) =>
      lines
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
        .filter(({ event }) => event === name),
    send: (body, { key, apiKey = demoKey } = {}) => ask('POST', '/api/messages', body, apiKey, key),
    get: (path, { apiKey = demoKey } = {}) => ask('GET', path, undefined, apiKey),
    post: (path, body, { key, apiKey = demoKey } = {}) => ask('POST', path, body, apiKey, key),
    admin: (method, path, body) => ask(method, `/api/admin${path}`, body, operatorToken),
    asOperator: (method, path, body) => ask(method, path, body, operatorToken),
    console: (path) => ask('GET', `/api/console${path}`, undefined, operatorToken),
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
  }
}

async function listening(child: ChildProcess, lines: string[], errors: string[]): Promise<string> {
  if (child.stdout === null || child.stderr === null) throw new Error('The server has no output')
  createInterface({ input: child.stderr }).on('line', (line) => errors.push(line))
  const url = Promise.withResolvers<string>()
  const reader = createInterface({ input: child.stdout })
  reader.on('line', (line) => {
    lines.push(line)
    const found = /listens on (http:\/\/\S+)/.exec(line)?.[1]
    if (found !== undefined) url.resolve(found)
  })
  child.once('exit', () => url.reject(new Error(`The server ended before it listened: ${errors.join('\n')}`)))
  return url.promise
}

/** Opens two servers on one store before the tests of a block, and ends them after it. */
export function withTwoServers(
  place: PlaceName,
  use: (...opened: readonly [cluster: Cluster, one: TestServer, two: TestServer]) => void,
  env: Env = {},
): void {
  let cluster: Cluster
  before(async () => {
    cluster = await openCluster(place, { processes: 2, env })
    const [one, two] = cluster.servers
    assert.ok(one !== undefined && two !== undefined)
    use(cluster, one, two)
  })
  after(() => cluster[Symbol.asyncDispose]())
}

/** Two workspaces whose keys are known to the test. */
export async function makeWorkspace(server: TestServer, id: string, caller = 'api'): Promise<string> {
  await server.admin('PUT', `/workspaces/${id}`, { name: id })
  const made = await server.admin('POST', `/workspaces/${id}/keys`, { caller })
  return String(made.body['key'])
}
