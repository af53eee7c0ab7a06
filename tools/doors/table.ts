/**
 * Who may import whom, as written in the house rules. A room is a folder of `src`; `stores/*` is every single store.
 * A room that is not listed here has no doors at all, so a new room begins with a line in this table.
 */
const below = {
  core: [],
  store: ['core'],
  'stores/*': ['core', 'store'],
  ledger: ['core', 'store'],
  guard: ['core', 'ledger'],
  region: ['core', 'ledger'],
  http: ['core', 'ledger', 'guard', 'region'],
  outbox: ['core', 'store', 'ledger'],
  run: ['core', 'store', 'ledger'],
  stream: ['core', 'store', 'ledger'],
  inbox: ['core', 'store', 'ledger', 'outbox'],
  saga: ['core', 'store', 'ledger', 'inbox', 'outbox'],
  brokers: ['core', 'inbox/port.ts', 'outbox/port.ts'],
  // The only broker without a server: its queues are tables in the store.
  'brokers/local': ['core', 'store', 'inbox/port.ts', 'outbox/port.ts'],
  'http/adapters': ['core', 'http'],
} as const satisfies Record<string, readonly string[]>

export const rooms: Readonly<Record<string, readonly string[]>> = {
  ...below,
  operate: Object.keys(below),
  // The server side of the pages, for any server.
  console: [...Object.keys(below), 'operate', 'telemetry', 'pages'],
  gateway: ['core', 'ledger', 'guard', 'http', 'region', 'telemetry', 'operate', 'console'],
  // Files and headers, for whoever serves them.
  pages: [],
  client: ['core'],
  telemetry: ['core'],
  cli: [...Object.keys(below), 'operate', 'gateway', 'client', 'telemetry', 'console', 'pages'],
  testing: ['core', 'store', 'stores/memory', 'ledger', 'guard', 'http', 'stream'],
  // The core entry only lists names, so it may reach what users hold and the words they need for it.
  'index.ts': ['core', 'store', 'ledger'],
}

/** Unit tests stand beside the code and keep its doors; they also need a store to run on, and the kit. */
export const testsAlsoImport: readonly string[] = ['stores/memory', 'testing']

/** Only these files may use a part of Node although their room may not. */
export const nodeInCore = { file: 'src/core/digest.ts', builtin: 'node:crypto' } as const

/** These live outside the package and see only what it exports. */
export const outsiders = ['service', 'console', 'examples', 'bench'] as const
