import { membersTable } from '../ledger/store/members.ts'
import type { Migration, RoomDialect } from '../ledger/store/sql.ts'
import { queueTables } from './queue-tables.ts'
import { encryptedEntryColumns } from './stored.ts'

/** Wakes workers that look for runs. */
export const RUN_TOPIC = 'run:due'

/** The room under which these tables are listed among the migrations. */
export const RUN_ROOM = 'run'

export const WORKERS = 'onceonly_run_workers'

/** The leases of runs. They have no end of their own: a run is held for as long as its worker is a member. */
export const RUNS = {
  table: 'onceonly_runs',
  key: 'id',
  keyType: 'text',
  holder: 'worker',
  freeAt: 'due_at',
} as const

/** A run with an unknown step waits for an operator: its timeout must not hide that. */
export const HAS_DEADLINE = "deadline_at is not null and ended_at is null and state <> 'unknown'"

function tables(big: string): readonly string[] {
  return [
    `create table onceonly_runs (
      id text primary key,
      definition text not null,
      version integer not null,
      state text not null,
      input text not null,
      input_fingerprint text not null,
      result text,
      failure text,
      worker text,
      fence ${big} not null,
      due_at ${big},
      taken_at ${big},
      taken_before ${big},
      started_at ${big} not null,
      ended_at ${big},
      restarts text,
      timeout_ms ${big},
      deadline_at ${big},
      queue text,
      queue_key text,
      dedup_key text,
      priority ${big},
      place text,
      turn ${big},
      ready_at ${big},
      admitted_at ${big},
      parent text,
      if_parent_ends text,
      cancelled_at ${big},
      cleans integer not null default 0,
      continues text,
      continued_as text,
      forked_from text
    )`,
    `create index onceonly_runs_deadline on onceonly_runs (deadline_at) where ${HAS_DEADLINE}`,
    ...queueTables(big),
    // Held runs are not in it, so that a step never touches an index of this table.
    'create index onceonly_runs_due on onceonly_runs (due_at) where due_at is not null',
    'create index onceonly_runs_worker on onceonly_runs (worker) where worker is not null',
    'create index onceonly_runs_ended on onceonly_runs (ended_at) where ended_at is not null',
    'create index onceonly_runs_parent on onceonly_runs (parent) where parent is not null',
    // Children that end with their parent, and have not: only these are looked at again and again.
    `create index onceonly_runs_bound on onceonly_runs (parent)
      where if_parent_ends = 'cancel' and ended_at is null and cancelled_at is null`,
    `create table onceonly_run_steps (
      run_id text not null,
      key text not null,
      position integer not null,
      branch text not null,
      step_id text not null,
      tick integer not null,
      kind text not null,
      state text not null,
      attempts integer not null,
      due_at ${big},
      fingerprint text,
      plan text,
      result text,
      failures text not null,
      recorded text not null,
      at ${big} not null,
      primary key (run_id, key)
    )`,
    // What runs emitted is read by its place, without the steps around it.
    `create index onceonly_run_steps_events on onceonly_run_steps (run_id, position) where kind = 'event'`,
    `create table onceonly_run_attributes (
      run_id text not null,
      name text not null,
      value text not null,
      primary key (run_id, name)
    )`,
    'create index onceonly_run_attributes_value on onceonly_run_attributes (name, value, run_id)',
    `create table onceonly_run_signals (
      run_id text not null,
      id text not null,
      name text not null,
      number integer not null,
      payload text not null,
      primary key (run_id, id)
    )`,
    // One lease for a process and all its runs: a heartbeat writes one row, however many runs it has.
    membersTable(WORKERS, 'text', big),
  ]
}

const UNKNOWN = `create index onceonly_runs_unknown on onceonly_runs (started_at) where state = 'unknown'`

/** What stands before the first slash of an id: whose run it is, where ids are made so. */
export function scopeSql({ textBefore }: RoomDialect): string {
  return textBefore('id', '/')
}

/** Workers that ended one after the other while they had the run, and nothing was recorded in between. */
const TAKEOVERS = [
  'alter table onceonly_runs add column takeovers integer not null default 0',
  // Few runs ever had one: those on their last takeover are found without a look at all that are due.
  'create index onceonly_runs_takeovers on onceonly_runs (due_at) where takeovers > 1',
]

/** `due_at`: when a process looks at it; null while it is paused. `wanted`: what an operator wants to be started now. */
function schedulesTable(big: string): string {
  return `create table onceonly_run_schedules (
    name text primary key,
    spec text not null,
    next_at ${big},
    due_at ${big},
    paused integer not null default 0,
    wanted text,
    last_run text,
    started ${big} not null default 0,
    skipped ${big} not null default 0
  )`
}

/** Why a schedule could not start its run, and how often in a row. */
const SCHEDULE_FAILURES = (big: string) => [
  'alter table onceonly_run_schedules add column failure text',
  `alter table onceonly_run_schedules add column failures ${big} not null default 0`,
]

/** Few runs fail: those of the last day are counted every few seconds. */
const FAILED = `create index onceonly_runs_failed on onceonly_runs (ended_at) where state = 'failed'`

export const runMigrations: readonly Migration[] = [
  {
    version: 1,
    oldestCode: 1,
    up: ({ types }) => tables(types.integer),
    encrypted: {
      onceonly_runs: { input: 'secret', input_fingerprint: 'secret', result: 'secret', failure: 'secret' },
      onceonly_run_steps: Object.fromEntries(encryptedEntryColumns.map((name) => [name, 'secret'])),
      onceonly_run_signals: { payload: 'secret' },
      onceonly_run_attributes: { value: 'lookup' },
    },
  },
  // Few runs wait for an operator: this finds and counts them without a scan of all the others.
  { version: 2, oldestCode: 1, up: () => [UNKNOWN] },
  // Pages of runs, newest first, without looking at those of others.
  {
    version: 3,
    oldestCode: 1,
    up: (dialect) => [
      `create index onceonly_runs_scope on onceonly_runs (${scopeSql(dialect)}, started_at, id)`,
      'create index onceonly_runs_started on onceonly_runs (started_at, id)',
    ],
  },
  { version: 4, oldestCode: 1, up: () => TAKEOVERS },
  // Older code would not know that the step behind such a line may have begun.
  { version: 5, oldestCode: 5, up: () => ['alter table onceonly_run_steps add column leads_to text'] },
  { version: 6, oldestCode: 1, up: ({ types }) => [schedulesTable(types.integer)] },
  { version: 7, oldestCode: 5, up: () => [FAILED] },
  {
    version: 8,
    oldestCode: 5,
    up: ({ types }) => SCHEDULE_FAILURES(types.integer),
    encrypted: { onceonly_run_schedules: { failure: 'secret' } },
  },
]
