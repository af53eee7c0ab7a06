import { leaseColumns } from '../../ledger/store/leases.ts'
import type { Migration } from '../../ledger/store/sql.ts'

/** The room under which the tables are listed in `onceonly_migrations`. */
export const SAGA_ROOM = 'saga'

/** The leases of what is to be delivered. */
export const PENDING = { table: 'onceonly_saga_pending', key: 'token', keyType: 'text' } as const

/** An instance without an end has no `ends_at`: the index holds only what the sweep will remove one day. */
const instances = (text: string, integer: string) => `CREATE TABLE onceonly_saga_instances (
  saga ${text} NOT NULL,
  id ${text} NOT NULL,
  state ${text} NOT NULL,
  version ${integer} NOT NULL,
  created_at ${integer} NOT NULL,
  updated_at ${integer} NOT NULL,
  completed_at ${integer},
  ends_at ${integer},
  data ${text} NOT NULL,
  PRIMARY KEY (saga, id)
)`

/**
 * What will be delivered to an instance by itself: timeouts, which have a name, and deferred events, which have none.
 * `token` changes whenever a row means something else than before, so that a delivery under way is recognised as stale.
 * `free_at` is when it is delivered, or, while it is being delivered, when another process may do it instead.
 */
const pending = (text: string, integer: string, seq: string) => `CREATE TABLE onceonly_saga_pending (
  seq ${seq},
  token ${text} NOT NULL,
  saga ${text} NOT NULL,
  id ${text} NOT NULL,
  name ${text},
  event ${text} NOT NULL,
  body ${text} NOT NULL,
  due_at ${integer} NOT NULL,
  ${leaseColumns(text, integer)},
  deliveries integer NOT NULL
)`

const history = (text: string, integer: string, seq: string) => `CREATE TABLE onceonly_saga_history (
  seq ${seq},
  saga ${text} NOT NULL,
  id ${text} NOT NULL,
  at ${integer} NOT NULL,
  entry ${text} NOT NULL
)`

const statements = (text: string, integer: string, seq: string) => [
  instances(text, integer),
  'CREATE INDEX onceonly_saga_instances_end ON onceonly_saga_instances (saga, ends_at) WHERE ends_at IS NOT NULL',
  pending(text, integer, seq),
  'CREATE UNIQUE INDEX onceonly_saga_pending_token ON onceonly_saga_pending (token)',
  // Nulls are distinct, so that an instance may have one timeout of a name and any number of deferred events.
  'CREATE UNIQUE INDEX onceonly_saga_pending_name ON onceonly_saga_pending (saga, id, name)',
  'CREATE INDEX onceonly_saga_pending_due ON onceonly_saga_pending (saga, free_at)',
  history(text, integer, seq),
  'CREATE INDEX onceonly_saga_history_of ON onceonly_saga_history (saga, id, seq)',
]

/** Forward only: append, never change one that was released. */
export const sagaMigrations: readonly Migration[] = [
  {
    version: 1,
    oldestCode: 1,
    up: ({ types: { text, integer, position } }) => statements(text, integer, position),
    encrypted: {
      onceonly_saga_instances: { data: 'secret' },
      onceonly_saga_pending: { body: 'secret' },
      onceonly_saga_history: { entry: 'secret' },
    },
  },
]
