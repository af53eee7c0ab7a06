import type { LedgerRecord, Vacant } from '../../core/record.ts'
import { goneAtOf } from '../../core/record.ts'
import { LEDGER_ROOM } from '../ledger-migrations.ts'
import type { Call, Store } from '../port.ts'
import { RESTORES_ID } from '../restores.ts'
import { MARKER_ID, type Marker, readMarker, writeMarker } from './marker.ts'
import type { Opened, Opener } from './opened.ts'
import { rekeyTable } from './rekey-tables.ts'
import type { Rekeyed, StoreEncryption } from './status.ts'

/** A record that changes while it is read is read again. */
const TRIES = 3
const RECORDS = 'records'

export function createRekey(store: Store, opener: Opener): StoreEncryption {
  const { claims, queries, sql } = store

  async function replace(before: LedgerRecord | null, after: LedgerRecord, call: Call): Promise<boolean> {
    const { decision } = await claims.apply({ kind: 'replace', id: after.id, before, after }, call)
    return decision.kind === 'replaced'
  }

  /** Nothing of it is left but the id, until the sweep comes by. */
  function emptied(record: LedgerRecord): Vacant {
    const { id, claimId, attempts, claimedAt, policy } = record
    const identity = { ...record.identity, caller: MOVED, key: MOVED }
    // A fence of its own, given by the store: lists go by fences, and the copy has that of the record.
    const life = { id, fence: 0, incarnation: 0, claimId, attempts, claimedAt, policy, identity }
    return {
      ...life,
      state: 'vacant',
      fingerprint: 'v1:0:moved',
      pointer: null,
      awaited: false,
      history: [],
      goneAt: 0,
      forgotten: true,
    }
  }

  /** The encrypted copy first: a claim that misses the plain record finds it. */
  async function move(on: Opened, plain: LedgerRecord, now: number, call: Call): Promise<Outcome> {
    if (plain.identity.key === MOVED && plain.identity.caller === MOVED) return 'current'
    const goneAt = goneAtOf(plain)
    if (goneAt !== null && goneAt <= now) return (await replace(plain, emptied(plain), call)) ? 'changed' : 'left'
    // An attempt, or an operator's word on one, may still write to the others.
    if (plain.state !== 'succeeded' && plain.state !== 'failed_terminal' && plain.state !== 'vacant') return 'left'
    const copy = on.codec.sealRecord(plain)
    await replace(null, copy, call)
    if (await replace(plain, emptied(plain), call)) return 'changed'
    await replace(copy, { ...emptied(copy), identity: copy.identity }, call)
    return 'left'
  }

  async function reseal(on: Opened, found: LedgerRecord, call: Call): Promise<Outcome> {
    let record: LedgerRecord | null = found
    for (let tries = 0; tries < TRIES; tries++) {
      if (record === null || on.codec.isCurrent(record)) return 'current'
      const opened = on.codec.openRecord(record)
      if (!isReadable(record, opened)) return 'left'
      if (await replace(record, on.codec.sealRecord(opened), call)) return 'changed'
      record = (await claims.read([record.id], call)).records[0] ?? null
    }
    return 'left'
  }

  async function records(on: Opened, cursor: string | null, limit: number, call: Call): Promise<Rekeyed> {
    const page = await queries.list({ ended: true }, { limit, cursor }, call)
    const { now } = await claims.read([], call)
    const counts = { changed: 0, left: 0, current: 0 }
    for (const { record } of page.rows) {
      if (record.id === MARKER_ID || record.id === RESTORES_ID) continue
      const sealed = on.codec.isSealed(record)
      counts[sealed ? await reseal(on, record, call) : await move(on, record, now, call)]++
    }
    const { changed, left } = counts
    return { cursor: page.cursor, at: RECORDS, looked: page.rows.length, changed, left }
  }

  /** The tables of records are known. */
  async function undeclaredOf({ plain, rooms }: Marker): Promise<readonly string[]> {
    if (!plain || sql === undefined) return []
    const there = await sql.query<{ room: string }>('SELECT DISTINCT room FROM onceonly_migrations ORDER BY room')
    return there.map(({ room }) => room).filter((room) => room !== LEDGER_ROOM && !rooms.includes(room))
  }

  return {
    async status(call) {
      const { encryption } = await opener.open(call)
      const marker = await readMarker(store, call)
      const { writers, plain } = marker
      const undeclared = await undeclaredOf(marker)
      return { writeWith: encryption.writeWith, keys: [...encryption.keys.keys()], writers, plain, undeclared }
    },
    async rekey(cursor, limit, call) {
      const on = await opener.open(call)
      const { at, after } = placeOf(cursor)
      if (at === RECORDS) {
        const step = await records(on, after, limit, call)
        if (step.cursor !== null) return { ...step, cursor: cursorOf(RECORDS, step.cursor) }
        return { ...step, cursor: sql === undefined ? null : cursorOf('', null) }
      }
      if (sql === undefined) return { cursor: null, at, looked: 0, changed: 0, left: 0 }
      const { columns } = await readMarker(store, call)
      const step = await rekeyTable({ sql, on, columns }, { table: at, after, limit })
      if (step === null) return { cursor: null, at, looked: 0, changed: 0, left: 0 }
      return { ...step, cursor: cursorOf(step.at, step.cursor) }
    },
    async finish(call) {
      const on = await opener.open(call)
      if ((await undeclaredOf(await readMarker(store, call))).length > 0) return false
      const { writeWith, keys, lost } = on.encryption
      const written = await writeMarker(
        store,
        (marker) => {
          const kept = Object.entries(marker.wraps).filter(([id]) => keys.has(id))
          return {
            ...marker,
            wraps: Object.fromEntries(kept),
            writers: [writeWith, ...marker.writers.filter((id) => lost.includes(id))],
            plain: false,
          }
        },
        call,
      )
      if (written) on.endPlain()
      return written
    },
  }
}

type Outcome = 'changed' | 'left' | 'current'

const MOVED = 'onceonly:moved'

/** What cannot be opened is left as it is: its key may be found again. */
function isReadable(sealed: LedgerRecord, opened: LedgerRecord): boolean {
  if ((sealed.pointer === null) !== (opened.pointer === null)) return false
  if ('outcome' in sealed && 'outcome' in opened) {
    return (sealed.outcome.data === null) === (opened.outcome.data === null)
  }
  return (
    sealed.state !== 'unknown' || opened.state !== 'unknown' || (sealed.reason === null) === (opened.reason === null)
  )
}

function cursorOf(at: string, after: string | null): string {
  return JSON.stringify([at, after])
}

function placeOf(cursor: string | null): { at: string; after: string | null } {
  if (cursor === null) return { at: RECORDS, after: null }
  const [at, after] = JSON.parse(cursor) as [string, string | null]
  return { at, after }
}
