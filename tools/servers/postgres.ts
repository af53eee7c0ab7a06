import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findPrograms, type Place, quote, type Recipe } from './server.ts'

/** Debian keeps the server's programs out of PATH, in one folder for each major version. */
const DEBIAN_ROOT = '/usr/lib/postgresql'
/** A socket's path has to fit into 107 bytes, of which the name `/.s.PGSQL.65535` takes 15. */
const SOCKET_FOLDER_MAX_BYTES = 92
/** Many test files and benchmark pools share one server; PostgreSQL's own default of 100 is soon used up. */
const MAX_CONNECTIONS = 200

export const postgres = {
  kind: 'postgres',
  variable: 'ONCEONLY_TEST_POSTGRES_URL',
  packages: ['postgresql'],
  // Debian's package creates and starts a cluster of its own by default.
  filesWhileInstalling: { '/etc/postgresql-common/createcluster.d/onceonly.conf': 'create_main_cluster = false\n' },
  accounts: ['postgres', 'nobody'],
  // "Immediate": no last checkpoint. SIGTERM would wait for the clients to leave.
  stopSignal: 'QUIT',
  find: () => findPrograms(['initdb', 'postgres'], debianFolders()),
  script,
  isReady,
  url: ({ port }) => `postgres://postgres@127.0.0.1:${port}/postgres`,
} as const satisfies Recipe

function script(programs: string, { folder, port }: Place): string {
  const data = quote(join(folder, 'data'))
  const socketFolder = Buffer.byteLength(folder) <= SOCKET_FOLDER_MAX_BYTES ? folder : ''
  // What a killed server left of its pid file would be taken for a server that is ready.
  // Only the making of the empty cluster goes unsynced. What the server writes is as durable as PostgreSQL is by
  // default, because benchmarks compare durable writes.
  return `
    [ -e ${data}/PG_VERSION ] || ${quote(join(programs, 'initdb'))} --pgdata ${data} --no-sync --no-instructions \\
      --username=postgres --auth=trust --encoding=UTF8 --locale=C || exit
    rm -f ${data}/postmaster.pid
    exec ${quote(join(programs, 'postgres'))} -D ${data} -p ${port} -c listen_addresses=127.0.0.1 \\
      -c unix_socket_directories=${quote(socketFolder)} -c max_connections=${MAX_CONNECTIONS}`
}

/** The postmaster writes its state into the eighth line of its pid file, which is also what `pg_ctl --wait` reads. */
async function isReady({ folder }: Place): Promise<boolean> {
  try {
    const lines = (await readFile(join(folder, 'data', 'postmaster.pid'), 'utf8')).split('\n')
    return lines[7]?.trim() === 'ready'
  } catch {
    return false
  }
}

export function debianFolders(): string[] {
  try {
    const versions = readdirSync(DEBIAN_ROOT).sort((a, b) => Number(b) - Number(a))
    return versions.map((version) => join(DEBIAN_ROOT, version, 'bin'))
  } catch {
    return []
  }
}
