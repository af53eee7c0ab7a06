import { limits } from '../../ledger/core/limits.ts'
import type { ColumnTypes } from '../../ledger/store/dialect.ts'
import { leaseColumns } from '../../ledger/store/leases.ts'
import { membersTable } from '../../ledger/store/members.ts'
import type { SqlStore } from '../../ledger/store/port.ts'
import type { Migration } from '../../ledger/store/sql.ts'
import type { WingTables } from '../../ledger/store/wing-tables.ts'
import { createWingTables } from '../../ledger/store/wing-tables.ts'

export const OUTBOX_ROOM = 'outbox'

export const RELAYS = 'onceonly_outbox_relays'

/** The leases of partitions. */
export const PARTITIONS = { table: 'onceonly_outbox_partitions', key: 'partition', keyType: 'bigint' } as const

/** What a row of the outbox and a dead letter have in common, in the order in which they are copied. */
export const ROW_COLUMNS = 'position, partition, number, added_at, bytes, line, id, topic, key, headers, body'

const rowColumns = ({ text, integer }: ColumnTypes) => `
  partition integer NOT NULL,
  number ${integer},
  added_at ${integer} NOT NULL,
  bytes integer NOT NULL,
  line ${text} NOT NULL,
  id ${text} NOT NULL,
  topic ${text} NOT NULL,
  key ${text},
  headers ${text} NOT NULL,
  body ${text} NOT NULL`

function statements(types: ColumnTypes): readonly string[] {
  const { text, integer, position, busyTable } = types
  return [
    // A row is here from its commit until it was confirmed, so that the table is as small as the lag. Its position
    // grows
    // with its key's number, because both are taken while the key's counter is locked.
    `CREATE TABLE onceonly_outbox_rows (position ${position}, ${rowColumns(types)}) ${busyTable}`,
    'CREATE INDEX onceonly_outbox_rows_next ON onceonly_outbox_rows (partition, position)',
    // Never indexed by anything that counting changes, so that PostgreSQL updates it in place.
    `CREATE TABLE onceonly_outbox_keys (line ${text} PRIMARY KEY, number ${integer} NOT NULL, used_at ${integer} NOT NULL)`,
    `CREATE TABLE onceonly_outbox_ids (id ${text} PRIMARY KEY, added_at ${integer} NOT NULL)`,
    'CREATE INDEX onceonly_outbox_ids_age ON onceonly_outbox_ids (added_at)',
    // Few lines ever fail. Parked is 1 when an operator has to decide; until then it is retried from `due_at`.
    `CREATE TABLE onceonly_outbox_failing (
       line ${text} PRIMARY KEY,
       partition integer NOT NULL,
       parked integer NOT NULL,
       attempts integer NOT NULL,
       due_at ${integer} NOT NULL,
       reason ${text} NOT NULL
     )`,
    `CREATE TABLE onceonly_outbox_dead (
       position ${integer} PRIMARY KEY, ${rowColumns(types)},
       parked_at ${integer} NOT NULL,
       attempts integer NOT NULL,
       reason ${text} NOT NULL
     )`,
    'CREATE INDEX onceonly_outbox_dead_line ON onceonly_outbox_dead (line)',
    'CREATE INDEX onceonly_outbox_dead_id ON onceonly_outbox_dead (id)',
    // The relay of each share. Listening is 0 while its relay is too busy to need a notification.
    `CREATE TABLE onceonly_outbox_partitions (
       partition integer PRIMARY KEY,
       listening integer NOT NULL DEFAULT 1,
       ${leaseColumns(text, integer)}
     )`,
    `INSERT INTO onceonly_outbox_partitions (partition) VALUES ${Array.from({ length: limits.outboxPartitions }, (_, n) => `(${n})`).join(', ')}`,
    membersTable(RELAYS, text, integer),
  ]
}

const ENCRYPTED = { key: 'lookup', headers: 'secret', body: 'secret' } as const

/** Forward only: append, never change one that was released. */
export const outboxTables: readonly Migration[] = [
  {
    version: 1,
    oldestCode: 1,
    up: ({ types }) => statements(types),
    encrypted: { onceonly_outbox_rows: ENCRYPTED, onceonly_outbox_dead: ENCRYPTED },
  },
  {
    // Names the outbox in what it publishes, so that consumers of several outboxes can distinguish their numbers.
    version: 2,
    oldestCode: 1,
    up: ({ types, randomText }) => [
      `CREATE TABLE onceonly_outbox_identity (id ${types.text} NOT NULL)`,
      `INSERT INTO onceonly_outbox_identity (id) VALUES (${randomText})`,
    ],
  },
]

/** The newest version of the tables. */
export const OUTBOX_VERSION = outboxTables.length

export function outboxTablesOf(store: SqlStore): WingTables {
  return createWingTables(store, OUTBOX_ROOM, outboxTables)
}
