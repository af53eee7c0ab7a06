/**
 * Which room may import which. A room is a folder of `src`, without the rooms inside of it; `ledger/stores/*` is every single store.
 * A room that is not listed here has no doors at all, so a new room begins with a line in this table.
 */
const heart = ['runtime', 'ledger/core', 'ledger/store', 'ledger', 'ledger/guard'] as const

const below = {
  runtime: [],
  'ledger/core': [],
  'ledger/store': ['runtime', 'ledger/core'],
  'ledger/stores/*': ['runtime', 'ledger/core', 'ledger/store'],
  ledger: ['runtime', 'ledger/core', 'ledger/store'],
  // Adapters to ORMs, by their shape.
  'ledger/orms': ['ledger/core', 'ledger/store'],
  'ledger/guard': ['runtime', 'ledger/core', 'ledger'],

  'http/client': ['ledger/core'],
  'http/front': ['runtime', 'ledger/core'],
  'http/region': heart,
  'http/protocol': [...heart, 'http/front', 'http/region'],
  'http/adapters': ['ledger/core', 'http/protocol', 'http'],
  'http/gateway': [...heart, 'http/front', 'http/region', 'http/protocol'],
  // The entry `onceonly/http` only lists names.
  http: ['http/protocol', 'http/front'],

  'events/outbox': heart,
  'events/inbox': [...heart, 'events/outbox'],
  'events/saga': [...heart, 'events/inbox', 'events/outbox'],
  'events/brokers': ['runtime', 'ledger/core', 'events/inbox/port.ts', 'events/outbox/port.ts'],
  // The only broker without a server: its queues are tables in the store.
  'events/brokers/local': [
    'runtime',
    'ledger/core',
    'ledger/store',
    'events/brokers',
    'events/inbox/port.ts',
    'events/outbox/port.ts',
  ],

  runs: heart,

  // For other worlds: they put the parts of several wings together.
  'platforms/nest': ['ledger/core', 'ledger', 'http/protocol', 'http/adapters'],
  'platforms/lambda': ['runtime', 'ledger/core', 'http/protocol', 'events/inbox'],

  // What a browser loads: neither a store nor a server is behind these doors.
  'streams/parts': ['ledger/core'],
  'streams/protocol': ['ledger/core', 'streams/parts', 'streams'],
  'streams/client': ['runtime', 'ledger/core', 'streams/parts', 'streams/protocol', 'streams'],
  streams: ['ledger/core', 'streams/parts', 'streams/protocol', 'streams/client'],
  'streams/log': [...heart, 'streams/parts', 'streams/protocol', 'streams/client', 'streams'],
  'streams/exchange': [...heart, 'streams/protocol', 'streams'],
  'streams/server': [
    ...heart,
    'streams/parts',
    'streams/protocol',
    'streams/client',
    'streams/log',
    'streams/exchange',
    'streams',
    // What an outbox hands over, to be said in rooms.
    'events/outbox/port.ts',
  ],
} as const satisfies Record<string, readonly string[]>

const everyWing = Object.keys(below)

export const rooms: Readonly<Record<string, readonly string[]>> = {
  ...below,
  // Listens to the events of all wings by their shape and knows none of them.
  'admin/telemetry': ['ledger/core'],
  // Files and headers, for any server.
  'admin/pages': [],
  'admin/core': [...everyWing, 'admin/telemetry'],
  'admin/commands': [...everyWing, 'admin/core'],
  // The entry `onceonly/admin` only lists names.
  admin: ['ledger/core', 'admin/core', 'admin/commands'],
  'admin/console': [...everyWing, 'admin/core', 'admin/commands', 'admin/telemetry', 'admin/pages'],
  'admin/cli': [...everyWing, 'admin/core', 'admin/commands', 'admin/telemetry', 'admin/console', 'admin/pages'],
  testing: [...heart, 'ledger/stores/memory', 'http/region', 'http/protocol', 'http'],
  // The core entry only lists names, so it may reach what users hold and the words they need for it.
  'index.ts': [...heart, 'errors.ts'],
  // Puts the tables of errors together, each of which belongs to its wing.
  'errors.ts': [
    'ledger/core',
    'ledger/store/encryption/errors.ts',
    'http/client/errors.ts',
    'events/outbox/errors.ts',
    'events/inbox/identities/errors.ts',
    'events/brokers/errors.ts',
    'events/saga/errors.ts',
    'runs/errors.ts',
    'streams/parts/errors.ts',
    'streams/client/errors.ts',
    'streams/exchange/errors.ts',
  ],
}

/** Unit tests stand beside the code and keep its doors; they also need a store to run on, and the kit. */
export const testsAlsoImport: readonly string[] = ['ledger/stores/memory', 'testing']

/** Only these files may use a part of Node although their room may not. */
export const nodeInCore = { file: 'src/ledger/core/digest.ts', builtin: 'node:crypto' } as const

/** These live outside the package and see only what it exports. */
export const outsiders = ['service', 'console', 'examples', 'bench'] as const
