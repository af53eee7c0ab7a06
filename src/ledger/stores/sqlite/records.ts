import type { RecordId } from '../../core/identity.ts'
import { FOREVER } from '../../core/limits.ts'
import type { FailedRetryable, FailedTerminal, InProgress, LedgerRecord, Policy, Succeeded } from '../../core/record.ts'
import type { Grant } from '../../core/request.ts'
import type { RecordRow } from '../../store/row.ts'
import { fromRow, keptCode, pointerText, policyText, stateCode, toRow } from '../../store/row.ts'
import { recordColumns } from '../../store/sql/tables.ts'
import type { Anchor } from './clock.ts'
import { endBeforeBoot } from './clock.ts'
import type { BoundValue, Database } from './driver.ts'
import { refusedRow } from './errors.ts'

type Ended = Succeeded | FailedTerminal | FailedRetryable

/** Reading and writing rows, on one connection. What to write was decided before. */
export interface RecordStatements {
  read(id: RecordId, anchor: Anchor): LedgerRecord | null
  /**
   * The record of a first claim, which has a life before it and no past. False when there is a row under this id
   * already: one atomic step, never find-then-insert.
   */
  insertFirst(record: InProgress): boolean
  /**
   * The usual settle: the record is still what its grant says, it has no waiters, and nothing unusual ever happened to it.
   * What it becomes is then known without reading, and one guarded UPDATE writes it. False when a guard failed: nothing is
   * written, and the record has to be read and decided as any other. With an anchor it commits by itself, outside of a
   * transaction: it counts only while the file has the clock that gave the time.
   */
  settle(grant: Grant, after: Ended, anchor: Anchor | null): boolean
  insert(record: LedgerRecord): void
  /** A new incarnation starts its counts again. */
  update(record: LedgerRecord, newIncarnation: boolean): void
  addUnknown(id: RecordId): void
  removeUnknown(id: RecordId): void
}

/** `id` and the counts are handled apart. */
const columns = recordColumns.filter((column) => column !== 'id')

const COLUMNS = columns.join(', ')

/** Finds the record of an id, which is bound twice. */
const BY_ID = 'seq = (SELECT seq FROM onceonly_ids WHERE id = ?) AND id = ?'

/** No record is where its id leads: it was removed, and another may have its place. */
export const LEADS_NOWHERE =
  'NOT EXISTS (SELECT 1 FROM onceonly_records AS r WHERE r.seq = onceonly_ids.seq AND r.id = onceonly_ids.id)'

/** Takes the id for the next record, whose `seq` SQLite chooses in the same way. Changes nothing when there is a record. */
const TAKE_ID = `INSERT INTO onceonly_ids (id, seq)
  VALUES (?, (SELECT coalesce(max(seq), 0) + 1 FROM onceonly_records))
  ON CONFLICT (id) DO UPDATE SET seq = excluded.seq WHERE ${LEADS_NOWHERE}`

/** Every value that is bound costs time, and a first claim has only these. */
const FIRST = `INSERT INTO onceonly_records
    (id, fence, state, due_at, claimed_at, incarnation, attempts, awaited,
     claim_id, fingerprint, policy, tenant, caller, operation, key, batch)
  VALUES (?, ?, ?, ?, ?, ?, 1, 0, ?, ?, ?, ?, ?, ?, ?, ?)`
const INSERT = `INSERT INTO onceonly_records (id, ${COLUMNS}) VALUES (${['id', ...columns].map(() => '?').join(', ')})`
const UPDATE = `UPDATE onceonly_records SET ${columns.map((column) => `${column} = ?`).join(', ')}`

const SETTLE = `UPDATE onceonly_records
  SET state = ?, due_at = ?, settled_at = ?, expires_at = ?, gone_at = ?, kept = ?, pointer = ?, outcome = ?
  WHERE ${BY_ID} AND fence = ? AND claim_id = ? AND state = ${stateCode.running} AND awaited = 0 AND detail IS NULL
    AND pointer IS ? AND policy = ? AND fingerprint = ? AND incarnation = ? AND attempts = ? AND claimed_at = ?`

const SETTLE_ALONE = `${SETTLE} AND EXISTS (SELECT 1 FROM onceonly_meta
    WHERE one = 1 AND boot_id = ? AND anchor_monotonic = ? AND anchor_wall = ? AND offset_ms = ?)`

/** The statements, for connections that are not ours as well. */
export const recordTexts = {
  read: `SELECT ${COLUMNS} FROM onceonly_records WHERE ${BY_ID}`,
  takeId: TAKE_ID,
  insert: INSERT,
  update: `${UPDATE} WHERE ${BY_ID}`,
  restart: `${UPDATE}, replays = 0, conflicts = 0, in_progress = 0, repeated_at = NULL WHERE ${BY_ID}`,
  addUnknown: 'INSERT OR IGNORE INTO onceonly_unknowns (id) VALUES (?)',
  removeUnknown: 'DELETE FROM onceonly_unknowns WHERE id = ?',
} as const

export function prepareRecords(db: Database): RecordStatements {
  const read = db.prepare(recordTexts.read)
  const takeId = db.prepare(recordTexts.takeId)
  const first = db.prepare(FIRST)
  const insert = db.prepare(recordTexts.insert)
  const update = db.prepare(recordTexts.update)
  const restart = db.prepare(recordTexts.restart)
  const settle = db.prepare(SETTLE)
  const settleAlone = db.prepare(SETTLE_ALONE)
  const addUnknown = db.prepare(recordTexts.addUnknown)
  const removeUnknown = db.prepare(recordTexts.removeUnknown)
  return {
    read: (id, anchor) => {
      const blob = blobOf(id)
      const row = read.get(blob, blob)
      return row === undefined ? null : recordOf(row as unknown as RecordRow, id, anchor)
    },
    insertFirst: (record) => {
      const { identity, fence } = record
      const blob = blobOf(record.id)
      if (takeId.run(blob).changes === 0) return false
      first.run(
        blob,
        fence,
        record.started ? stateCode.running : stateCode.reserved,
        time('due_at', record.leaseUntil),
        record.claimedAt,
        fence,
        text('claim_id', record.claimId),
        text('fingerprint', record.fingerprint),
        knownText(record.policy),
        text('tenant', identity.tenant),
        text('caller', identity.caller),
        text('operation', identity.operation),
        text('key', identity.key),
        identity.batch === undefined ? null : text('batch', identity.batch),
      )
      return true
    },
    settle: (grant, after, anchor) => {
      const { data } = after.outcome
      const blob = blobOf(grant.id)
      const values: BoundValue[] = [
        stateCode[after.state],
        after.state === 'failed_retryable' ? time('due_at', after.retryAt) : null,
        after.settledAt,
        time('expires_at', after.expiresAt),
        time('gone_at', after.goneAt),
        keptCode[after.outcome.kept],
        after.pointer === null ? null : text('pointer', pointerText(after.pointer)),
        data === null ? null : text('outcome', data),
        blob,
        blob,
        grant.fence,
        grant.claimId,
        grant.pointer === null ? null : pointerText(grant.pointer),
        knownText(grant.policy),
        grant.fingerprint,
        grant.incarnation,
        grant.attempt,
        grant.claimedAt,
      ]
      if (anchor === null) return settle.run(...values).changes === 1
      values.push(anchor.bootId, anchor.monotonicMs, anchor.wallMs, anchor.offsetMs)
      return settleAlone.run(...values).changes === 1
    },
    insert: (record) => {
      const blob = blobOf(record.id)
      if (takeId.run(blob).changes === 0) throw refusedRow('There is a record under this id already.')
      insert.run(blob, ...valuesOf(record))
    },
    update: (record, newIncarnation) => {
      const statement = newIncarnation ? restart : update
      const blob = blobOf(record.id)
      statement.run(...valuesOf(record), blob, blob)
    },
    addUnknown: (id) => void addUnknown.run(blobOf(id)),
    removeUnknown: (id) => void removeUnknown.run(blobOf(id)),
  }
}

/** The policy of an operation is one object for all of its records: that of the last row is often that of the next. */
let lastPolicy: Policy | null = null
let lastText = ''

function knownText(policy: Policy): string {
  if (policy !== lastPolicy) {
    lastText = policyText(policy)
    lastPolicy = policy
  }
  return lastText
}

export const ID_BYTES = 16

/** 16 bytes instead of 32 digits: half the index, twice as many entries in each of its pages. */
export function blobOf(id: RecordId): Uint8Array {
  const blob = Buffer.from(id, 'hex')
  if (blob.byteLength !== ID_BYTES) throw refusedRow('The record id is not 32 hexadecimal digits.')
  return blob
}

/** Everything that is read passes here: a lease that was granted before the last boot has ended. */
export function recordOf(row: RecordRow, id: RecordId, anchor: Anchor): LedgerRecord {
  const record = fromRow(Object.assign(row, { id }))
  if (record.state !== 'in_progress' || record.fence > anchor.bootFence) return record
  return { ...record, leaseUntil: Math.min(record.leaseUntil, endBeforeBoot(anchor)) }
}

export function valuesOf(record: LedgerRecord): (string | number | null)[] {
  const row = toRow(record)
  return columns.map((column) => {
    const value = row[column]
    if (value === null) return null
    return typeof value === 'string' ? text(column, value) : time(column, value)
  })
}

/**
 * Refuses what would come back differently than it was given. UTF-8 turns half a surrogate pair into another character,
 * and SQL's own functions end a text at a NUL.
 */
function text(column: string, value: string): string {
  if (typeof value !== 'string') throw refusedRow(`The record's \`${column}\` is no text.`)
  if (value.includes('\0')) throw refusedRow(`The record's \`${column}\` contains a NUL character.`)
  if (!value.isWellFormed()) throw refusedRow(`The record's \`${column}\` contains half a surrogate pair.`)
  return value
}

/** A time past "never" is "never": a larger integer could be written, but `node:sqlite` would refuse to read it. */
function time(column: string, value: number): number {
  if (!Number.isFinite(value)) throw refusedRow(`The record's \`${column}\` is ${value}.`)
  return value > FOREVER ? FOREVER : value
}
