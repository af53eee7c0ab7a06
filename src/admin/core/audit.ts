import { encodeValue } from '../../ledger/core/codec.ts'
import type { Identity } from '../../ledger/core/identity.ts'
import { limits } from '../../ledger/core/limits.ts'
import type { Migration, SqlSeam } from '../../ledger/store/sql.ts'

/** The operator of an action, and where it came from. */
export interface Actor {
  readonly by: string
  readonly via: string
}

/** One action of an operator. Written before it is done and once more afterwards; rows are never changed. */
export interface AuditEntry {
  readonly action: string
  readonly at: number
  readonly by: string
  readonly via: string
  readonly what: string
  /** What it was done to. */
  readonly target: string
  /** `asked` stands alone only where the process ended in between, or the store did not take the second line. */
  readonly result: 'asked' | 'done' | 'refused'
  readonly note: string | null
}

export interface Audit {
  /** Does it, and writes who asked for it and its result. An action that cannot be written down is not done. */
  act<T>(actor: Actor, what: string, target: Readonly<Record<string, unknown>>, work: () => Promise<T>): Promise<T>
  /** How often this was done to exactly this. */
  times(what: string, target: Readonly<Record<string, unknown>>): Promise<number>
  /** Newest first. */
  list(page: { readonly limit?: number; readonly cursor?: string | null }): Promise<{
    readonly rows: readonly AuditEntry[]
    readonly cursor: string | null
  }>
}

export const OPERATE_ROOM = 'operate'

const table = (text: string, integer: string, seq: string) => `CREATE TABLE onceonly_operator_audit (
  seq ${seq},
  action ${text} NOT NULL,
  at ${integer} NOT NULL,
  actor ${text} NOT NULL,
  via ${text} NOT NULL,
  what ${text} NOT NULL,
  target ${text} NOT NULL,
  result ${text} NOT NULL,
  note ${text}
)`

const index = 'CREATE INDEX onceonly_operator_audit_action ON onceonly_operator_audit (action)'

/** The session at the console. */
const sessions = (text: string, integer: string) => `CREATE TABLE onceonly_operator_sessions (
  digest ${text} PRIMARY KEY,
  role ${text} NOT NULL,
  name ${text} NOT NULL,
  proof ${text} NOT NULL,
  ends_at ${integer} NOT NULL
)`

/** What servers counted in each minute of the last day: for the charts of the console. */
const history = (text: string, integer: string) => `CREATE TABLE onceonly_operator_history (
  at ${integer} NOT NULL,
  source ${text} NOT NULL,
  line ${text} NOT NULL,
  PRIMARY KEY (at, source)
)`

export const operateMigrations: readonly Migration[] = [
  {
    version: 1,
    oldestCode: 1,
    // Rows cannot be changed without changing the schema first.
    up: ({ types: { text, integer, position }, appendOnly }) => [
      table(text, integer, position),
      index,
      ...appendOnly('onceonly_operator_audit', 'the audit is only appended to'),
    ],
  },
  {
    version: 2,
    oldestCode: 1,
    up: ({ types: { text, integer } }) => [sessions(text, integer)],
  },
  {
    version: 3,
    oldestCode: 1,
    up: ({ types: { text, integer } }) => [history(text, integer)],
  },
]

const NOTE_CHARS = 500

/** @param prepare brings the tables of `operateMigrations` up to date */
export function createAudit(sql: SqlSeam, prepare: () => Promise<void>): Audit {
  async function write(entry: Omit<AuditEntry, 'at'>): Promise<void> {
    const { action, by, via, what, target, result, note } = entry
    await sql.query(
      `INSERT INTO onceonly_operator_audit (action, at, actor, via, what, target, result, note)
         VALUES (?, ${sql.now}, ?, ?, ?, ?, ?, ?)`,
      [
        action,
        storable(by),
        via,
        what,
        // Under the store's own key, because these rows can never be written again.
        sql.lookup(storable(target)),
        result,
        sql.lookup(note === null ? null : storable(note)),
      ],
    )
  }

  /**
   * Writes the result. Where that fails, `asked` stands alone, which means that the result is not known; the operator
   * still gets the result of the action.
   */
  async function close(entry: Omit<AuditEntry, 'at'>): Promise<void> {
    await write(entry).catch(() => {})
  }

  return {
    async act(actor, what, target, work) {
      await prepare()
      const entry = {
        ...actor,
        action: crypto.randomUUID(),
        what,
        target: targetText(target),
        note: null,
      }
      await write({ ...entry, result: 'asked' })
      const value = await work().catch(async (error: unknown) => {
        const note = error instanceof Error ? error.message : String(error)
        await close({ ...entry, result: 'refused', note })
        throw error
      })
      await close({ ...entry, result: 'done' })
      return value
    },
    async times(what, target) {
      await prepare()
      const [row] = await sql.query<{ n: unknown }>(
        `SELECT count(*) AS n FROM onceonly_operator_audit WHERE what = ? AND target = ? AND result = 'done'`,
        [what, sql.lookup(storable(targetText(target)))],
      )
      return Number(row?.n ?? 0)
    },
    async list({ limit = limits.pageRows, cursor = null }) {
      await prepare()
      const most = Math.min(Math.max(1, limit), limits.pageRows)
      const below = cursor === null ? Number.MAX_SAFE_INTEGER : Number(cursor) || 0
      const rows = await sql.query<Readonly<Record<string, unknown>>>(
        `SELECT a.seq, a.action, a.at, a.actor, a.via, a.what, a.target, e.result, e.note
         FROM onceonly_operator_audit AS a
         LEFT JOIN onceonly_operator_audit AS e ON e.action = a.action AND e.seq > a.seq
         WHERE a.result = 'asked' AND a.seq < ? ORDER BY a.seq DESC LIMIT ?`,
        [below, most],
      )
      const last = rows.length === most ? rows.at(-1) : undefined
      return { rows: rows.map(entryOf), cursor: last === undefined ? null : String(last['seq']) }
    },
  }
}

/** Always in one order, so that an action on an identity is found again. */
export function targetOf({ tenant, caller, operation, key, batch }: Identity): Readonly<Record<string, unknown>> {
  return { tenant, caller, operation, key, ...(batch === undefined ? {} : { batch }) }
}

function targetText(target: Readonly<Record<string, unknown>>): string {
  const encoded = encodeValue(target)
  return 'text' in encoded ? encoded.text : '{}'
}

function entryOf(row: Readonly<Record<string, unknown>>): AuditEntry {
  const text = (name: string) => String(row[name])
  const result = row['result'] === 'done' || row['result'] === 'refused' ? row['result'] : 'asked'
  return {
    action: text('action'),
    at: Number(row['at']),
    by: text('actor'),
    via: text('via'),
    what: text('what'),
    target: text('target'),
    result,
    note: row['note'] === null || row['note'] === undefined ? null : text('note'),
  }
}

/** A column of text holds neither NUL nor half a surrogate pair. */
function storable(text: string): string {
  return text
    .toWellFormed()
    .replaceAll('\0', '�')
    .slice(0, Math.max(NOTE_CHARS, limits.identityPartBytes * 8))
}
