import type { SagaHistoryEntry } from '../../events/saga/history.ts'
import { createHistory } from '../../events/saga/history.ts'
import type { Instance } from '../../events/saga/instances.ts'
import { SAGA_ROOM } from '../../events/saga/tables.ts'
import { decodeValue } from '../../ledger/core/codec.ts'
import { limits } from '../../ledger/core/limits.ts'
import type { Page } from '../../ledger/store/port.ts'
import type { SqlSeam } from '../../ledger/store/sql.ts'
import type { Paging } from './dead-letters.ts'

export interface SagaCard {
  readonly saga: string
  readonly states: Readonly<Record<string, number>>
  /** Timeouts and deferred events that are to be delivered. */
  readonly pending: number
}

export interface InstanceCard extends Omit<Instance, 'endsAt' | 'data'> {
  readonly saga: string
}

export interface InstanceView extends InstanceCard {
  readonly data: unknown
  readonly history: readonly SagaHistoryEntry[]
  readonly pending: readonly { readonly name: string | null; readonly event: string; readonly dueAt: number }[]
}

/** Instances by their tables alone: the definitions are in the application's code. */
export interface Sagas {
  list(): Promise<readonly SagaCard[]>
  /** Changed last, first. */
  instances(saga: string, page?: Paging & { readonly state?: string }): Promise<Page<InstanceCard>>
  get(saga: string, id: string): Promise<InstanceView | null>
}

type Row = Readonly<Record<string, unknown>>

const COLUMNS = 'saga, id, state, version, created_at, updated_at, completed_at'
/** Rows that one look counts; beyond them, a number says nothing more. */
const COUNTED_ROWS = 100_000

export function createSagas(sql: SqlSeam, has: (room: string) => Promise<boolean>): Sagas {
  return {
    async list() {
      if (!(await has(SAGA_ROOM))) return []
      const states = await sql.query<{ saga: string; state: string; n: unknown }>(
        `SELECT saga, state, count(*) AS n FROM
           (SELECT saga, state FROM onceonly_saga_instances LIMIT ${COUNTED_ROWS}) AS i GROUP BY saga, state ORDER BY saga, state`,
      )
      const pending = await sql.query<{ saga: string; n: unknown }>(
        'SELECT saga, count(*) AS n FROM onceonly_saga_pending GROUP BY saga',
      )
      const due = new Map(pending.map(({ saga, n }) => [saga, Number(n)]))
      const cards = new Map<string, { saga: string; states: Record<string, number>; pending: number }>()
      for (const { saga, state, n } of states) {
        const card = cards.get(saga) ?? { saga, states: {}, pending: due.get(saga) ?? 0 }
        card.states[state] = Number(n)
        cards.set(saga, card)
      }
      return [...cards.values()]
    },
    async instances(saga, { limit = limits.pageRows, cursor = null, state } = {}) {
      if (!(await has(SAGA_ROOM))) return { rows: [], cursor: null }
      const most = Math.min(Math.max(1, limit), limits.pageRows)
      const [at = '', id = ''] =
        cursor === null ? [] : [cursor.slice(0, cursor.indexOf(' ')), cursor.slice(cursor.indexOf(' ') + 1)]
      const rows = await sql.query<Row>(
        `SELECT ${COLUMNS} FROM onceonly_saga_instances WHERE saga = ?
           ${state === undefined ? '' : 'AND state = ?'}
           ${cursor === null ? '' : 'AND (updated_at < ? OR (updated_at = ? AND id < ?))'}
           ORDER BY updated_at DESC, id DESC LIMIT ?`,
        [
          saga,
          ...(state === undefined ? [] : [state]),
          ...(cursor === null ? [] : [Number(at) || 0, Number(at) || 0, id]),
          most,
        ],
      )
      const cards = rows.map(cardOf)
      const last = cards.length === most ? cards.at(-1) : undefined
      return { rows: cards, cursor: last === undefined ? null : `${last.updatedAt} ${last.id}` }
    },
    async get(saga, id) {
      if (!(await has(SAGA_ROOM))) return null
      const [row] = await sql.query<Row & { readonly data: string }>(
        `SELECT ${COLUMNS}, data FROM onceonly_saga_instances WHERE saga = ? AND id = ?`,
        [saga, id],
      )
      if (row === undefined) return null
      const pending = await sql.query<{ name: string | null; event: string; due_at: unknown }>(
        'SELECT name, event, due_at FROM onceonly_saga_pending WHERE saga = ? AND id = ? ORDER BY due_at',
        [saga, id],
      )
      return {
        ...cardOf(row),
        data: decodeValue(row.data),
        history: await createHistory(sql, saga).read(id),
        pending: pending.map(({ name, event, due_at }) => ({ name, event, dueAt: Number(due_at) })),
      }
    },
  }
}

function cardOf(row: Row): InstanceCard {
  const completed = row['completed_at']
  return {
    saga: String(row['saga']),
    id: String(row['id']),
    state: String(row['state']),
    version: Number(row['version']),
    createdAt: Number(row['created_at']),
    updatedAt: Number(row['updated_at']),
    completedAt: completed === null ? null : Number(completed),
  }
}
