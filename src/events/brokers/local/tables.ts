import { leaseColumns } from '../../../ledger/store/leases.ts'
import type { Migration } from '../../../ledger/store/sql.ts'

export const LOCAL_ROOM = 'local'

/** The leases of deliveries. */
export const DELIVERIES = { table: 'onceonly_local_deliveries', key: 'seq', keyType: 'bigint' } as const

/**
 * One row per message and consumer group, deleted when that group has acknowledged it, so that groups do not wait for each
 * other. One index finds what may be handed over now, oldest first.
 */
export const localTables: readonly Migration[] = [
  {
    version: 1,
    oldestCode: 1,
    up: ({ types: { text, integer, position, busyTable } }) => [
      `CREATE TABLE onceonly_local_groups (
         consumer ${text} NOT NULL, topic ${text} NOT NULL, PRIMARY KEY (topic, consumer)
       )`,
      // A position never comes again: it would let a late answer hit another delivery.
      `CREATE TABLE onceonly_local_deliveries (
         seq ${position},
         published_at ${integer} NOT NULL,
         deliveries integer NOT NULL DEFAULT 0,
         consumer ${text} NOT NULL,
         ${leaseColumns(text, integer)},
         id ${text} NOT NULL,
         topic ${text} NOT NULL,
         key ${text},
         number ${integer},
         headers ${text} NOT NULL,
         body ${text} NOT NULL
       ) ${busyTable}`,
      'CREATE UNIQUE INDEX onceonly_local_deliveries_id ON onceonly_local_deliveries (consumer, id)',
      'CREATE INDEX onceonly_local_deliveries_due ON onceonly_local_deliveries (consumer, free_at, seq)',
    ],
    encrypted: { onceonly_local_deliveries: { key: 'secret', headers: 'secret', body: 'secret' } },
  },
]
