import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { findPrograms, type Place, quote, type Recipe } from './server.ts'

const MAX_CONNECTIONS = 200

export const mariadb = {
  kind: 'mariadb',
  variable: 'ONCEONLY_TEST_MARIADB_URL',
  packages: ['mariadb-server'],
  accounts: ['mysql', 'nobody'],
  // The data is thrown away, and so is what an orderly end would still write.
  stopSignal: 'QUIT',
  find: () => findPrograms(['mariadbd'], ['/usr/sbin']),
  script,
  isReady: async ({ folder }) => existsSync(join(folder, 'pid')),
  url: ({ port }) => `mariadb://root@127.0.0.1:${port}`,
} as const satisfies Recipe

function script(programs: string, { folder, port }: Place): string {
  const data = quote(join(folder, 'data'))
  // The pid file is written when the server is ready.
  return `
    [ -e ${data}/mysql ] || mariadb-install-db --no-defaults --datadir=${data} --skip-test-db \\
      --auth-root-authentication-method=normal || exit
    rm -f ${quote(join(folder, 'pid'))}
    exec ${quote(join(programs, 'mariadbd'))} --no-defaults --datadir=${data} --port=${port} --bind-address=127.0.0.1 \\
      --socket=${quote(join(folder, 'socket'))} --pid-file=${quote(join(folder, 'pid'))} --skip-name-resolve \\
      --max-connections=${MAX_CONNECTIONS}`
}
