import { encodeValue } from '../../ledger/core/codec.ts'
import type { Identity } from '../../ledger/core/identity.ts'
import { limits } from '../../ledger/core/limits.ts'
import type { Migration, RoomDialect, Script, SqlSeam } from '../../ledger/store/sql.ts'

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
  /** Removes some of the lines that are older. Nothing else removes any: the table refuses it. */
  sweep(keepMs: number): Promise<{ readonly removed: number; readonly more: boolean }>
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

const REFUSAL = 'the audit is only appended to'

/** Lines from before that time may be removed: a sweep says so in the transaction in which it removes them. */
const end = (integer: string) => [
  `CREATE TABLE onceonly_operator_audit_end (one ${integer} PRIMARY KEY, before_at ${integer} NOT NULL)`,
  'INSERT INTO onceonly_operator_audit_end (one, before_at) VALUES (1, 0)',
]
const IS_KEPT = 'at >= (SELECT before_at FROM onceonly_operator_audit_end WHERE one = 1)'

const untilItsEnd: Readonly<Record<RoomDialect['name'], readonly string[]>> = {
  sqlite: [
    'DROP TRIGGER onceonly_operator_audit_no_delete',
    `CREATE TRIGGER onceonly_operator_audit_no_delete BEFORE DELETE ON onceonly_operator_audit
      WHEN old.${IS_KEPT} BEGIN SELECT RAISE(ABORT, '${REFUSAL}'); END`,
  ],
  postgres: [
    'DROP TRIGGER onceonly_operator_audit_append ON onceonly_operator_audit',
    `CREATE TRIGGER onceonly_operator_audit_append BEFORE UPDATE OR TRUNCATE ON onceonly_operator_audit
      FOR EACH STATEMENT EXECUTE FUNCTION onceonly_operator_audit_refuse()`,
    `CREATE FUNCTION onceonly_operator_audit_refuse_kept() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF old.${IS_KEPT} THEN RAISE EXCEPTION '${REFUSAL}'; END IF; RETURN old; END $$`,
    `CREATE TRIGGER onceonly_operator_audit_keep BEFORE DELETE ON onceonly_operator_audit
      FOR EACH ROW EXECUTE FUNCTION onceonly_operator_audit_refuse_kept()`,
  ],
}

/** The version of these tables that has a place for what servers keep. */
export const KEPT_ROWS_SINCE = 4
/** What servers on this store keep for how long: for a command line that knows nothing of them. */
const retention = (text: string) =>
  `CREATE TABLE onceonly_operator_retention (what ${text} PRIMARY KEY, line ${text} NOT NULL)`

export const operateMigrations: readonly Migration[] = [
  {
    version: 1,
    oldestCode: 1,
    // Rows cannot be changed without changing the schema first.
    up: ({ types: { text, integer, position }, appendOnly }) => [
      table(text, integer, position),
      index,
      ...appendOnly('onceonly_operator_audit', REFUSAL),
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
  {
    version: KEPT_ROWS_SINCE,
    oldestCode: 1,
    up: ({ name, types: { text, integer } }) => [...end(integer), ...untilItsEnd[name], retention(text)],
  },
]

const NOTE_CHARS = 500
/** Lines that one step removes. */
const SWEPT_LINES = 500

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
    async sweep(keepMs) {
      await prepare()
      // In the order in which they were written: so the first one is the oldest.
      const [first] = await sql.query(
        `SELECT 1 AS old FROM (SELECT at FROM onceonly_operator_audit ORDER BY seq LIMIT 1) AS first
         WHERE first.at < ${sql.now} - ?`,
        [keepMs],
      )
      if (first === undefined) return { removed: 0, more: false }
      const removed = await sql.script(() => removeOld(sql, keepMs))
      return { removed, more: removed === SWEPT_LINES }
    },
  }
}

function* removeOld({ now, dialect }: SqlSeam, keepMs: number): Script<number> {
  yield { text: `UPDATE onceonly_operator_audit_end SET before_at = ${now} - ? WHERE one = 1`, values: [keepMs] }
  const old = `SELECT seq FROM onceonly_operator_audit WHERE at < (SELECT before_at FROM onceonly_operator_audit_end)
    ORDER BY seq LIMIT ${SWEPT_LINES} ${dialect.lock('for update skip locked')}`
  return (yield { text: `DELETE FROM onceonly_operator_audit WHERE seq IN (${old}) RETURNING seq`, values: [] }).length
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
