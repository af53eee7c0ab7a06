import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { startRecipes } from './index.ts'
import { answers } from './probe.ts'
import { findPrograms, type Place, quote, type Recipe } from './server.ts'

/** Sessions at the server for each database: few, so that the connections of a test really share them. */
const SERVER_SESSIONS = 4
const MAX_CLIENTS = 500
/** The first version that keeps the named statements of its clients. */
const KEEPS_STATEMENTS = [1, 21] as const
/** The protocol's question whether the server speaks TLS, as every client may ask it first. */
const ASK_TLS = '\x00\x00\x00\x08\x04\xd2\x16\x2f'

const find = () => findPrograms(['pgbouncer'], ['/usr/sbin'])

/** Whether the installed PgBouncer has the setting `max_prepared_statements`. */
export function keepsStatements(): boolean {
  const folder = find()
  if (folder === undefined) return false
  const [, major = 0, minor = 0] = (
    /PgBouncer (\d+)\.(\d+)/.exec(execFileSync(join(folder, 'pgbouncer'), ['--version'], { encoding: 'utf8' })) ?? []
  ).map(Number)
  const [leastMajor, leastMinor] = KEEPS_STATEMENTS
  return major > leastMajor || (major === leastMajor && minor >= leastMinor)
}

/**
 * A PgBouncer in front of a PostgreSQL server, in transaction mode: each transaction may get another session. Answers its
 * URL, which takes the names of the server's databases; null where it is not installed and cannot be.
 */
export async function startPgbouncer(
  postgresUrl: string,
  settings: Readonly<Record<string, string | number>> = {},
): Promise<{ readonly url: string; stop(): Promise<void> } | null> {
  const recipe = recipeFor(postgresUrl, settings)
  const { env, stop } = await startRecipes([recipe])
  const url = env[recipe.variable]
  return url === undefined ? null : { url, stop }
}

function recipeFor(postgresUrl: string, settings: Readonly<Record<string, string | number>>): Recipe {
  const { hostname, port, username, password } = new URL(postgresUrl)
  const server = [`host=${hostname}`, `port=${port || '5432'}`, `user=${decodeURIComponent(username)}`]
  if (password !== '') server.push(`password=${decodeURIComponent(password)}`)
  return {
    kind: 'pgbouncer',
    variable: 'ONCEONLY_TEST_PGBOUNCER_URL',
    packages: ['pgbouncer'],
    accounts: ['postgres', 'nobody'],
    // At once, whatever its clients do.
    stopSignal: 'TERM',
    find,
    script: (programs, place) => script(programs, place, server.join(' '), settings),
    isReady: async ({ port }) => (await answers(port, ASK_TLS, 'N')) || (await answers(port, ASK_TLS, 'S')),
    url: ({ port }) => `postgres://postgres@127.0.0.1:${port}/postgres`,
  }
}

function script(
  programs: string,
  { folder, port }: Place,
  server: string,
  settings: Readonly<Record<string, string | number>>,
): string {
  const all = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'any',
    pool_mode: 'transaction',
    default_pool_size: SERVER_SESSIONS,
    max_client_conn: MAX_CLIENTS,
    ...settings,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`)
  const file = quote(join(folder, 'pgbouncer.ini'))
  const text = ['[databases]', `* = ${server}`, '[pgbouncer]', ...lines].join('\n')
  return `printf '%s\\n' ${quote(text)} >${file}; exec ${quote(join(programs, 'pgbouncer'))} ${file}`
}
