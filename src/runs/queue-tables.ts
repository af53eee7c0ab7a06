/** Best first. A run's turn grows with the runs of its key that wait before it, so that keys take turns. */
export const QUEUE_ORDER = 'priority desc, turn, ready_at, id'

/**
 * The limits that hold for a queue are those in its row: all processes go by them. A run of a queue has its `place` in words:
 * `delayed` until its time has come, `waiting` when it may be let in, `blocked` while its key has no place, and `admitted` from
 * when it is let in, for good. A run that was cancelled before has none.
 */
export function queueTables(big: string): readonly string[] {
  return [
    `create table onceonly_run_queues (
      name text primary key,
      concurrency ${big},
      per_key ${big},
      rate_limit ${big},
      rate_ms ${big},
      paused integer not null default 0
    )`,
    `create index onceonly_runs_waiting on onceonly_runs (queue, ${QUEUE_ORDER}) where place = 'waiting'`,
    `create index onceonly_runs_blocked on onceonly_runs (queue, queue_key, ${QUEUE_ORDER}) where place = 'blocked'`,
    "create index onceonly_runs_delayed on onceonly_runs (queue, ready_at) where place = 'delayed'",
    'create index onceonly_runs_turns on onceonly_runs (queue, queue_key, priority, turn) where turn is not null',
    `create index onceonly_runs_admitted on onceonly_runs (queue, queue_key)
      where place = 'admitted' and ended_at is null`,
    'create index onceonly_runs_rate on onceonly_runs (queue, admitted_at) where admitted_at is not null',
    // One run that waits or runs for each of them.
    `create unique index onceonly_runs_dedup on onceonly_runs (queue, dedup_key)
      where dedup_key is not null and ended_at is null`,
  ]
}
