import { INBOX_ROOM } from '../../events/inbox/tables.ts'
import { statusOf } from '../../events/outbox/operate.ts'
import { OUTBOX_ROOM } from '../../events/outbox/tables.ts'
import type { Fence } from '../../ledger/core/identity.ts'
import { HOUR, limits, MINUTE } from '../../ledger/core/limits.ts'
import type { Store } from '../../ledger/store/port.ts'
import type { SqlSeam } from '../../ledger/store/sql.ts'
import { readQueues } from '../../runs/queue-operator.ts'
import { RUN_ROOM } from '../../runs/tables.ts'
import type { StandingShape } from '../telemetry/event-shapes.ts'
import { createRoomCheck } from './rooms.ts'
import { countUnknownSteps } from './unknowns.ts'

/** How things stand, by questions that stay cheap however much is stored: asked every few seconds. */
export interface Standing extends StandingShape {
  readonly staleLeases: number
  readonly unknownWaiting: number
  /** Runs that failed within the last day and were not resumed. */
  readonly runsFailed?: number
  /** The claims have a store of their own, which does not answer: what it holds is missing in these figures. */
  readonly claimsAway?: boolean
}

/** A worker looks for due runs every few seconds, so a run that is due for minutes has no worker. */
const STUCK_MS = 5 * MINUTE
/** A failure is news for a day. */
const FAILED_MS = 24 * HOUR
/** More than an operator can check: counting stops here. */
const COUNTED_ROWS = 10_000
/** More than a program declares; their names become labels, which are bounded as well. */
const MOST_SCHEDULES = 1_000

const call = { timeoutMs: limits.storeCallMs }

/**
 * Counts what waits in a store: stale leases, unknown outcomes, messages, dead letters, stuck runs. The gauges of
 * `createTelemetry` show it.
 *
 * @example
 * ```ts
 * import { createStanding } from 'onceonly/admin'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const standing = createStanding(sqliteStore('once.db'))
 * const { unknownWaiting, staleLeases } = await standing()
 * ```
 */
export function createStanding(store: Store): () => Promise<Standing> {
  const { sql } = store
  const has = sql === undefined ? null : createRoomCheck(sql)
  let lowWater: Fence = 0

  async function staleLeases(): Promise<number> {
    const { rows, next } = await store.queries.lapsed(lowWater, limits.pageRows, call)
    lowWater = next
    return rows.length
  }

  return async () => {
    const [stale, unknown] = await Promise.all([staleLeases(), countUnknowns(store)])
    const records = { staleLeases: stale, unknownWaiting: unknown }
    if (sql === undefined || has === null) return records
    const [outbox, inbox, run] = await Promise.all([has(OUTBOX_ROOM), has(INBOX_ROOM), has(RUN_ROOM)])
    return {
      ...records,
      ...(outbox ? { outbox: await statusOf(sql) } : {}),
      ...(inbox ? { inboxDeadLetters: await countLetters(sql) } : {}),
      ...(run ? { ...(await countRuns(sql)), queues: await backlogs(sql), schedules: await lateness(sql) } : {}),
    }
  }
}

async function countUnknowns({ queries }: Store): Promise<number> {
  let count = 0
  let cursor: string | null = null
  do {
    const page = await queries.unknowns({ limit: limits.pageRows, cursor }, call)
    count += page.rows.length
    cursor = page.cursor
  } while (cursor !== null && count < COUNTED_ROWS)
  return count
}

async function countLetters(sql: SqlSeam): Promise<Readonly<Record<string, number>>> {
  const rows = await sql.query<{ consumer: string; n: unknown }>(
    `SELECT consumer, count(*) AS n FROM (SELECT consumer FROM onceonly_inbox_dead_letters LIMIT ${COUNTED_ROWS}) AS l
     GROUP BY consumer`,
  )
  return Object.fromEntries(rows.map(({ consumer, n }) => [consumer, Number(n)]))
}

/** All along an index: what is due, who holds it, and what is unknown. */
async function countRuns(sql: SqlSeam): Promise<Pick<Required<Standing>, 'runsStuck' | 'runsUnknown' | 'runsFailed'>> {
  const now = `(SELECT ${sql.now})`
  const [row] = await sql.query<{ due: unknown; held: unknown; failed: unknown }>(
    `SELECT
       (SELECT count(*) FROM (SELECT 1 FROM onceonly_runs WHERE due_at < ${now} - ${STUCK_MS} LIMIT ${COUNTED_ROWS}) AS d) AS due,
       (SELECT count(*) FROM (SELECT 1 FROM onceonly_runs WHERE worker IS NOT NULL AND worker NOT IN (
          SELECT id FROM onceonly_run_workers WHERE lease_until > ${now} - ${STUCK_MS}) LIMIT ${COUNTED_ROWS}) AS h) AS held,
       (SELECT count(*) FROM (SELECT 1 FROM onceonly_runs WHERE state = 'failed' AND ended_at > ${now} - ${FAILED_MS}
          LIMIT ${COUNTED_ROWS}) AS f) AS failed`,
  )
  const runsUnknown = await countUnknownSteps(sql, COUNTED_ROWS)
  const runsStuck = Number(row?.due ?? 0) + Number(row?.held ?? 0)
  return { runsStuck, runsUnknown, runsFailed: Number(row?.failed ?? 0) }
}

async function backlogs(sql: SqlSeam): Promise<Required<Standing>['queues']> {
  const { now, queues } = await readQueues(sql, COUNTED_ROWS)
  return Object.fromEntries(
    queues.map(({ name, waiting, blocked, delayed, running, waitingSince }) => {
      const oldestMs = waitingSince === null ? 0 : Math.max(0, now - waitingSince)
      return [name, { waiting, blocked, delayed, running, oldestMs }]
    }),
  )
}

/** By schedule; one that is paused, or has no tick any more, is not late. */
async function lateness(sql: SqlSeam): Promise<Required<Standing>['schedules']> {
  const rows = await sql.query<{ name: string; late: unknown }>(
    `SELECT name, ${sql.now} - next_at AS late FROM onceonly_run_schedules
     WHERE next_at IS NOT NULL AND paused = 0 ORDER BY name LIMIT ${MOST_SCHEDULES}`,
  )
  return Object.fromEntries(rows.map(({ name, late }) => [name, { lateMs: Math.max(0, Number(late)) }]))
}
