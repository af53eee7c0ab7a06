import { join } from 'node:path'
import { answers } from './probe.ts'
import { findPrograms, type Place, quote, type Recipe } from './server.ts'

export const redis = {
  kind: 'redis',
  variable: 'ONCEONLY_TEST_REDIS_URL',
  packages: ['redis-server'],
  accounts: ['redis', 'nobody'],
  stopSignal: 'TERM',
  find: () => findPrograms(['redis-server']),
  script,
  isReady,
  url: ({ port }) => `redis://127.0.0.1:${port}`,
} as const satisfies Recipe

function script(programs: string, { folder, port }: Place): string {
  // Acknowledged means written and synced, as on PostgreSQL; a test of weaker settings sets them by CONFIG SET.
  // No snapshots: the append-only file is the record, and a last snapshot would only delay the end.
  return `
    exec ${quote(join(programs, 'redis-server'))} --bind 127.0.0.1 --port ${port} --dir ${quote(folder)} \\
      --appendonly yes --appendfsync always --save '' --maxmemory-policy noeviction --daemonize no`
}

/** While it loads, Redis answers every command with an error, so only a PONG counts. */
function isReady({ port }: Place): Promise<boolean> {
  return answers(port, 'PING\r\n', '+PONG')
}
