import { join } from 'node:path'
import { answers } from './probe.ts'
import { findPrograms, type Place, quote, type Recipe } from './server.ts'

/** Chromium without a window, as a server: tests connect to its debugging port and open pages of their own. */
export const browser = {
  kind: 'browser',
  variable: 'ONCEONLY_TEST_BROWSER_URL',
  packages: ['chromium'],
  accounts: ['nobody'],
  stopSignal: 'TERM',
  find: () => findPrograms(['chromium']),
  script,
  isReady,
  url: ({ port }) => `http://127.0.0.1:${port}`,
} as const satisfies Recipe

/**
 * It sees only our pages, so that it needs no sandbox, which containers do not offer. Its own requests to outside hosts are
 * turned off: tests also show that a page contacts no host but its own.
 */
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-extensions',
  '--disable-crash-reporter',
]

function script(programs: string, { folder, port }: Place): string {
  return `
    export HOME=${quote(folder)} XDG_CONFIG_HOME=${quote(folder)} XDG_CACHE_HOME=${quote(folder)}
    exec ${quote(join(programs, 'chromium'))} ${FLAGS.join(' ')} --user-data-dir=${quote(join(folder, 'profile'))} \\
      --remote-debugging-address=127.0.0.1 --remote-debugging-port=${port} about:blank`
}

function isReady({ port }: Place): Promise<boolean> {
  return answers(port, `GET /json/version HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`, 'HTTP/1.1 200')
}
