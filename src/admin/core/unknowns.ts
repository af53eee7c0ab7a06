import { OnceError } from '../../ledger/core/errors.ts'
import { limits } from '../../ledger/core/limits.ts'
import type { Failure } from '../../ledger/core/verdict.ts'
import type { Page, Store } from '../../ledger/store/port.ts'
import type { SqlRow, SqlSeam } from '../../ledger/store/sql.ts'
import { entryColumns, entryOf, readFailure } from '../../runs/stored.ts'
import { RUN_ROOM } from '../../runs/tables.ts'
import { type Card, cardOf, uncounted } from './card.ts'
import type { Paging } from './dead-letters.ts'
import { nameOfCall } from './explain.ts'
import { createGivenUp, type GivenUpMessage } from './given-up.ts'
import { quoted } from './quoted.ts'

interface Waiting {
  readonly since: number
  readonly attempts: number
  readonly failure: Failure | null
  /** What the other system was asked, as far as it is recorded. */
  readonly asked: string | null
  /** The command that ends it. */
  readonly end: string
}

/** A record whose effect may have happened. A message is one, of the operation that delivers it. */
export type UnknownRecord = Card & Waiting & { readonly kind: 'record' }

/** A step of a run that may have happened. */
export interface UnknownStep extends Waiting {
  readonly kind: 'step'
  readonly id: string
  readonly runId: string
  readonly definition: string
  readonly step: string
  readonly tick: number
  readonly key: string
  /** What a channel was asked to do, as JSON; null where the step keeps no plan. */
  readonly plan: string | null
  /** When the step's probe runs again; null where only an operator can resolve it. */
  readonly nextLookAt: number | null
}

/** A run that ended every worker that had it: parked until an operator resumes or cancels it. */
export interface ParkedRun extends Waiting {
  readonly kind: 'run'
  readonly id: string
  readonly runId: string
  readonly definition: string
}

/** Everything that waits for a decision: what may have happened, and what was given up. */
export type UnknownOutcome = UnknownRecord | UnknownStep | ParkedRun | GivenUpMessage

const call = { timeoutMs: limits.storeCallMs }

export interface Unknowns {
  /**
   * Records, newest or oldest first as the store has them; then runs, oldest first; then dead letters of the outbox and of
   * inboxes. All steps of a run stand on one page.
   */
  page(page: Paging): Promise<Page<UnknownOutcome>>
}

/** One kind of rows after the other; the cursor begins with the name of the current one. */
interface Stage {
  readonly name: string
  page(limit: number, cursor: string | null): Promise<Page<UnknownOutcome>>
}

export function createUnknowns(store: Store, has: (room: string) => Promise<boolean>): Unknowns {
  const { queries, clock, sql } = store
  const letters = createGivenUp(sql, has)

  async function records(limit: number, cursor: string | null): Promise<Page<UnknownOutcome>> {
    const page = await queries.unknowns({ limit, cursor }, call)
    const now = await clock.now(call)
    return { rows: page.rows.map((record) => recordOf(cardOf(record, uncounted, now))), cursor: page.cursor }
  }

  async function runs(limit: number, cursor: string | null): Promise<Page<UnknownOutcome>> {
    if (sql === undefined || !(await has(RUN_ROOM))) return { rows: [], cursor: null }
    const [startedAt, runId] = placeOf(cursor)
    const rows = await sql.query(unknownSteps(sql), [startedAt, runId, startedAt, runId, limit])
    const found = new Set(rows.map((row) => String(row['run_id'])))
    const last = found.size < limit ? undefined : rows.at(-1)
    const next = last === undefined ? null : `${String(last['started_at'])} ${String(last['run_id'])}`
    return { rows: rows.map(outcomeOf), cursor: next }
  }

  const first: Stage = { name: '', page: records }
  const others: readonly Stage[] = [
    { name: 'runs:', page: runs },
    { name: 'outbox:', page: letters.outbox },
    { name: 'inbox:', page: letters.inbox },
  ]

  return {
    async page({ limit = limits.pageRows, cursor = null }) {
      const most = Math.min(limit, limits.pageRows)
      const current = others.findIndex(({ name }) => cursor?.startsWith(name) === true)
      const stages = current < 0 ? [first, ...others] : others.slice(current)
      let from = cursor?.slice(stages[0]?.name.length) ?? null
      const rows: UnknownOutcome[] = []
      for (const stage of stages) {
        // A page with room left continues with the next kind, so that a short list is one page.
        if (rows.length >= most) return { rows, cursor: stage.name }
        const page = await stage.page(most - rows.length, from === '' ? null : from)
        rows.push(...page.rows)
        if (page.cursor !== null) return { rows, cursor: stage.name + page.cursor }
        from = null
      }
      return { rows, cursor: null }
    },
  }
}

/** As many rows as `page` lists of runs; counting stops at `most`. */
export async function countUnknownSteps(sql: SqlSeam, most: number): Promise<number> {
  const text = `SELECT count(*) AS n FROM (${unknownSteps(sql)}) AS u`
  const [row] = await sql.query<{ n: unknown }>(text, [...START, ...START, most])
  return Number(row?.n ?? 0)
}

const START = [-1, ''] as const
/** Runs in the hands of workers that are looked through for unknown steps: more than one process drives at once. */
const HELD_RUNS = 200

/**
 * A run is `unknown` when one of its steps is; while a worker probes again, or continues in another branch, it is
 * `running`. Both are found along an index, and their steps by the key of the table.
 */
function unknownSteps({ dialect }: SqlSeam): string {
  const { place } = dialect
  const at = `(${place('bigint')}, ${place('text')})`
  const columns = 'id, definition, failure, started_at'
  const steps = Object.keys(entryColumns)
  return `SELECT r.id AS run_id, r.definition, r.failure, r.started_at, ${steps.map((name) => `s.${name}`).join(', ')}
    FROM (SELECT * FROM (
        SELECT ${columns} FROM onceonly_runs WHERE state = 'unknown' AND (started_at, id) > ${at}
        UNION ALL
        SELECT ${columns} FROM
          (SELECT ${columns} FROM onceonly_runs WHERE worker IS NOT NULL AND (started_at, id) > ${at}
            ORDER BY started_at, id LIMIT ${HELD_RUNS}) AS held
          WHERE EXISTS (SELECT 1 FROM onceonly_run_steps AS s WHERE s.run_id = held.id AND s.state = 'unknown')
      ) AS either ORDER BY started_at, id LIMIT ?) AS r
    LEFT JOIN onceonly_run_steps AS s ON s.run_id = r.id AND s.state = 'unknown'
    ORDER BY r.started_at, r.id, s.position`
}

function placeOf(cursor: string | null): readonly [startedAt: number, runId: string] {
  if (cursor === null) return START
  const space = cursor.indexOf(' ')
  const startedAt = Number(cursor.slice(0, space))
  if (space < 1 || !Number.isSafeInteger(startedAt))
    throw new OnceError('bad_option', '`cursor` must be one that an earlier page returned.')
  return [startedAt, cursor.slice(space + 1)]
}

function recordOf(card: Card): UnknownRecord {
  return {
    ...card,
    kind: 'record',
    since: card.unknownSince ?? card.claimedAt,
    asked: askedOf(card),
    end: `onceonly resolve --id ${card.id} --to succeeded|failed|rerun`,
  }
}

/** As far as the attempt lived to note it: who was called, how often, and under which name. */
function askedOf(card: Card): string {
  const { facts, calls } = card
  const key = nameOfCall(card)
  return facts?.provider === undefined ? key : `${facts.provider}, ${calls === 1 ? 'once' : `${calls} times`}, ${key}`
}

function outcomeOf(row: SqlRow): UnknownStep | ParkedRun {
  const runId = String(row['run_id'])
  const definition = String(row['definition'])
  const common = { runId, definition }
  if (row['key'] === null) {
    return {
      kind: 'run',
      id: runId,
      ...common,
      since: Number(row['started_at']),
      attempts: 0,
      failure: readFailure(row['failure'] as string | null),
      asked: null,
      end: `onceonly run resume ${quoted(runId)}, or: onceonly run cancel ${quoted(runId)}`,
    }
  }
  const { stepId, tick, key, attempts, failures, at, plan, dueAt } = entryOf(row)
  const last = failures.at(-1)
  return {
    kind: 'step',
    id: `${runId} ${key}`,
    ...common,
    step: stepId,
    tick,
    key,
    since: at,
    attempts,
    failure: last ?? null,
    asked: `under the key ${key}`,
    plan,
    nextLookAt: dueAt,
    end: `onceonly run resolve ${quoted(runId)} ${quoted(key)} --to succeeded|failed|rerun`,
  }
}
