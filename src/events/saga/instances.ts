import { decodeValue, encodeValue } from '../../ledger/core/codec.ts'
import { exceedsBytes } from '../../ledger/core/identity.ts'
import type { Page } from '../../ledger/store/port.ts'
import { numberOrNull, type RowOf, type SqlSeam, type SqlTx } from '../../ledger/store/sql.ts'
import { sagaLimits } from './limits.ts'
import type { Machine } from './machine.ts'
import { misuse } from './react.ts'

/** One instance as it is stored. */
export interface Instance {
  readonly id: string
  readonly state: string
  /** Grows with every change: a save names the version that was read. */
  readonly version: number
  readonly createdAt: number
  readonly updatedAt: number
  readonly completedAt: number | null
  /** When the sweep removes it; null while it has no end. */
  readonly endsAt: number | null
  readonly data: unknown
}

export interface Saving {
  readonly id: string
  readonly state: string
  readonly data: unknown
  readonly completedAt: number | null
  readonly endsAt: number | null
}

/** What is there, and the store's time when it was looked at. */
export interface Loaded {
  readonly now: number
  readonly instance: Instance | null
}

export interface Instances {
  load(from: Pick<SqlTx, 'query'>, id: string): Promise<Loaded>
  /** False when another process created it first. */
  insert(tx: SqlTx, saving: Saving, now: number): Promise<boolean>
  /** False when another process changed it since that version. */
  update(tx: SqlTx, version: number, saving: Saving, now: number): Promise<boolean>
  /** Changes nothing but its version and its end, so that a concurrent save meets a conflict. */
  touch(tx: SqlTx, touched: Pick<Instance, 'id' | 'version' | 'endsAt'>, now: number): Promise<boolean>
  list(page: { readonly limit: number; readonly cursor: string | null }): Promise<Page<Omit<Instance, 'data'>>>
}

type Row = RowOf<'id' | 'state', 'version' | 'created_at' | 'updated_at' | 'completed_at' | 'ends_at'>

const COLUMNS = 'id, state, version, created_at, updated_at, completed_at, ends_at'

export function createInstances(sql: SqlSeam, machine: Machine): Instances {
  const saga = machine.name
  return {
    async load(from, id) {
      const [row] = await from.query<Partial<Row> & { now: number | string; data?: string }>(
        `SELECT ${sql.now} AS now, i.* FROM (SELECT 1 AS one) AS o
         LEFT JOIN onceonly_saga_instances AS i ON i.saga = ? AND i.id = ?`,
        [saga, id],
      )
      const instance = isThere(row) ? { ...fromRow(row), data: decodeValue(row.data) } : null
      return { now: Number(row?.now), instance }
    },
    async insert(tx, { id, state, data, completedAt, endsAt }, now) {
      // A racing insert of the same id is waited for: when it was committed, this one answers no row.
      const rows = await tx.query(
        `INSERT INTO onceonly_saga_instances (saga, ${COLUMNS}, data) VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?)
         ON CONFLICT (saga, id) DO NOTHING RETURNING version`,
        [saga, id, state, now, now, completedAt, endsAt, sql.secret(encoded(machine, data))],
      )
      return rows.length > 0
    },
    async update(tx, version, { id, state, data, completedAt, endsAt }, now) {
      const rows = await tx.query(
        `UPDATE onceonly_saga_instances
         SET state = ?, version = version + 1, updated_at = ?, completed_at = ?, ends_at = ?, data = ?
         WHERE saga = ? AND id = ? AND version = ? RETURNING version`,
        [state, now, completedAt, endsAt, sql.secret(encoded(machine, data)), saga, id, version],
      )
      return rows.length > 0
    },
    async touch(tx, { id, version, endsAt }, now) {
      const rows = await tx.query(
        `UPDATE onceonly_saga_instances SET version = version + 1, updated_at = ?, ends_at = ?
         WHERE saga = ? AND id = ? AND version = ? RETURNING version`,
        [now, endsAt, saga, id, version],
      )
      return rows.length > 0
    },
    async list({ limit, cursor }) {
      const found = await sql.query<Row>(
        `SELECT ${COLUMNS} FROM onceonly_saga_instances WHERE saga = ? AND id > ? ORDER BY id LIMIT ?`,
        [saga, cursor ?? '', limit + 1],
      )
      const rows = found.slice(0, limit).map(fromRow)
      return { rows, cursor: found.length > limit ? (rows.at(-1)?.id ?? null) : null }
    },
  }
}

function isThere(row: Partial<Row> | undefined): row is Row & { data: string } {
  return row !== undefined && typeof row.id === 'string'
}

function fromRow(row: Row): Omit<Instance, 'data'> {
  return {
    id: row.id,
    state: row.state,
    version: Number(row.version),
    createdAt: Number(row.created_at),
    updatedAt: Number(row.updated_at),
    completedAt: numberOrNull(row.completed_at),
    endsAt: numberOrNull(row.ends_at),
  }
}

function encoded(machine: Machine, data: unknown): string {
  const result = encodeValue(data)
  if ('problem' in result) throw misuse(machine, `has data that cannot be stored: ${result.problem}`)
  if (exceedsBytes(result.text, sagaLimits.dataBytes)) {
    throw misuse(machine, `has data of more than ${sagaLimits.dataBytes} bytes`)
  }
  return result.text
}
