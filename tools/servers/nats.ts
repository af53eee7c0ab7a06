import { join } from 'node:path'
import { answers } from './probe.ts'
import { findPrograms, type Place, quote, type Recipe } from './server.ts'

export const nats = {
  kind: 'nats',
  variable: 'ONCEONLY_TEST_NATS_URL',
  packages: ['nats-server'],
  accounts: ['nats', 'nobody'],
  stopSignal: 'TERM',
  find: () => findPrograms(['nats-server'], ['/usr/sbin']),
  script,
  isReady,
  url: ({ port }) => `nats://127.0.0.1:${port}`,
} as const satisfies Recipe

function script(programs: string, { folder, port }: Place): string {
  return `
    exec ${quote(join(programs, 'nats-server'))} --addr 127.0.0.1 --port ${port} \\
      --jetstream --store_dir ${quote(join(folder, 'data'))}`
}

/** The server introduces itself as soon as it accepts, which it does when its streams have been recovered. */
function isReady({ port }: Place): Promise<boolean> {
  return answers(port, '', 'INFO ')
}
