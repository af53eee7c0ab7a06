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
    up: {
      sqlite: [
        `CREATE TABLE onceonly_local_groups (
           consumer TEXT NOT NULL, topic TEXT NOT NULL, PRIMARY KEY (topic, consumer)
         ) WITHOUT ROWID`,
        // AUTOINCREMENT, because a number that came again would let a late answer hit another delivery.
        `CREATE TABLE onceonly_local_deliveries (
           seq INTEGER PRIMARY KEY AUTOINCREMENT,
           published_at INTEGER NOT NULL,
           deliveries INTEGER NOT NULL DEFAULT 0,
           consumer TEXT NOT NULL,
           ${leaseColumns('TEXT', 'INTEGER')},
           id TEXT NOT NULL,
           topic TEXT NOT NULL,
           key TEXT,
           number INTEGER,
           headers TEXT NOT NULL,
           body TEXT NOT NULL
         )`,
        'CREATE UNIQUE INDEX onceonly_local_deliveries_id ON onceonly_local_deliveries (consumer, id)',
        'CREATE INDEX onceonly_local_deliveries_due ON onceonly_local_deliveries (consumer, free_at, seq)',
      ],
      postgres: [
        `CREATE TABLE onceonly_local_groups (
           consumer text NOT NULL, topic text NOT NULL, PRIMARY KEY (topic, consumer)
         )`,
        `CREATE TABLE onceonly_local_deliveries (
           seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
           published_at bigint NOT NULL,
           deliveries integer NOT NULL DEFAULT 0,
           consumer text NOT NULL,
           ${leaseColumns('text', 'bigint')},
           id text NOT NULL,
           topic text NOT NULL,
           key text,
           number bigint,
           headers text NOT NULL,
           body text NOT NULL
         ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)`,
        'CREATE UNIQUE INDEX onceonly_local_deliveries_id ON onceonly_local_deliveries (consumer, id)',
        'CREATE INDEX onceonly_local_deliveries_due ON onceonly_local_deliveries (consumer, free_at, seq)',
      ],
    },
  },
]
