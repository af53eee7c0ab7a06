import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { digestParts } from '../../core/digest.ts'
import { OnceError } from '../../core/errors.ts'
import { ID_HEX_DIGITS } from '../../core/identity.ts'
import { FOREVER } from '../../core/limits.ts'
import type { LedgerRecord, Vacant } from '../../core/record.ts'
import type { Call, Store } from '../port.ts'
import type { EncryptedColumns, SqlTx } from '../sql.ts'
import { deriveKey } from './box.ts'
import { EncryptionError } from './errors.ts'
import type { CheckedEncryption } from './options.ts'

/**
 * An encrypted store says so in one record, which is never listed, counted or swept: the store's index key, encrypted with
 * every key that was configured, and the ids of the keys that have written since the last `rekey`. It is read before
 * anything else: a process with a wrong key, or with none, would look under other ids and run commands again.
 */
export const MARKER_ID = digestParts(['onceonly:encryption']).slice(0, ID_HEX_DIGITS)
const MARKER_TYPE = 'onceonly:encryption'

export interface Marker {
  readonly version: 1
  /** The index key, by the id of the key that encrypts it. */
  readonly wraps: Readonly<Record<string, string>>
  readonly writers: readonly string[]
  /** Records from before encryption may be there. */
  readonly plain: boolean
  /** What the tables of wings hold encrypted: `rekey` finds it here, also that of a wing that it does not know. */
  readonly columns: EncryptedColumns
  /** The rooms of tables that said so. */
  readonly rooms: readonly string[]
}

export interface OpenMarker extends Marker {
  readonly indexKey: Uint8Array
}

const INDEX_KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
const AAD = Buffer.from('onceonly index key')

function wrap(key: Uint8Array, indexKey: Uint8Array): string {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', deriveKey(key, 'wrap'), nonce).setAAD(AAD)
  const body = [nonce, cipher.update(indexKey), cipher.final(), cipher.getAuthTag()]
  return Buffer.concat(body).toString('base64url')
}

function unwrap(key: Uint8Array, wrapped: string): Uint8Array | null {
  const bytes = Buffer.from(wrapped, 'base64url')
  if (bytes.byteLength !== NONCE_BYTES + INDEX_KEY_BYTES + TAG_BYTES) return null
  const decipher = createDecipheriv('aes-256-gcm', deriveKey(key, 'wrap'), bytes.subarray(0, NONCE_BYTES))
  decipher.setAAD(AAD).setAuthTag(bytes.subarray(-TAG_BYTES))
  try {
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
  } catch {
    return null
  }
}

function recordOf({ version, wraps, writers, plain, columns, rooms }: Marker, before: LedgerRecord | null): Vacant {
  return {
    state: 'vacant',
    id: MARKER_ID,
    identity: { tenant: 'onceonly', caller: 'onceonly', operation: MARKER_TYPE, key: 'marker' },
    fingerprint: 'v1:0:marker',
    // A fence of its own is given by the store.
    incarnation: before?.incarnation ?? 0,
    fence: before?.fence ?? 0,
    claimId: 'marker',
    attempts: 1,
    claimedAt: before?.claimedAt ?? 0,
    pointer: { type: MARKER_TYPE, id: JSON.stringify({ version, wraps, writers, plain, columns, rooms }) },
    policy: { onAbandoned: 'hold', retainMs: FOREVER, refuseMs: 0, unknownMs: 0 },
    awaited: false,
    history: [],
    goneAt: FOREVER,
    forgotten: false,
  }
}

async function read(store: Store, call: Call): Promise<{ record: LedgerRecord | null; marker: Marker | null }> {
  const { records } = await store.claims.read([MARKER_ID], call)
  const record = records[0] ?? null
  if (record === null || record.pointer === null) return { record, marker: null }
  const marker = JSON.parse(record.pointer.id) as Marker
  if (marker.version !== 1) throw new OnceError('schema_too_new', 'The store is encrypted in a newer format.')
  return { record, marker }
}

export async function readMarker(store: Store, call: Call): Promise<Marker> {
  const { marker } = await read(store, call)
  if (marker === null) throw new OnceError('store_replaced', 'The marker of the encryption is gone from the store.')
  return marker
}

/** Says which columns of a room's tables are encrypted, none among them. */
export async function addColumns(store: Store, room: string, columns: EncryptedColumns, call: Call): Promise<void> {
  for (let tries = 0; tries < TRIES; tries++) {
    const marker = await readMarker(store, call)
    const all = { ...marker.columns }
    for (const [table, kinds] of Object.entries(columns)) all[table] = { ...all[table], ...kinds }
    const isKnown = marker.rooms.includes(room)
    if (isKnown && JSON.stringify(all) === JSON.stringify(marker.columns)) return
    const rooms = isKnown ? marker.rooms : [...marker.rooms, room]
    if (await writeMarker(store, (now) => ({ ...now, columns: all, rooms }), call)) return
  }
  throw fought()
}

function fought(): OnceError {
  return new OnceError('store_busy', 'Other processes changed the marker of the encryption again and again.')
}

/** For a store without keys: refuses what is encrypted. */
export async function refuseMarked(store: Store, call: Call): Promise<void> {
  const { marker } = await read(store, call)
  if (marker !== null) throw keysMissing(store, named(Object.keys(marker.wraps)))
}

/** The same in a transaction of an ORM, all of which are on PostgreSQL. */
export async function refuseMarkedIn(store: Store, sql: SqlTx): Promise<void> {
  const id = store.sql?.dialect.place('id') ?? '?'
  const found = await sql.query(`SELECT 1 FROM onceonly_records WHERE id = ${id}`, [MARKER_ID])
  if (found.length > 0) throw keysMissing(store, 'none')
}

function keysMissing(store: Store, ids: string): OnceError {
  return new EncryptionError(`The ${store.name} store is encrypted, and no keys are configured (${ids}).`)
}

function named(ids: readonly string[]): string {
  return ids.length === 0 ? 'none' : ids.map((id) => `\`${id}\``).join(', ')
}

function opened(store: Store, marker: Marker, { keys, lost }: CheckedEncryption): OpenMarker {
  const given = `configured: ${named([...keys.keys()])}`
  let indexKey: Uint8Array | null = null
  const wrong: string[] = []
  for (const [id, key] of keys) {
    const wrapped = marker.wraps[id]
    if (wrapped === undefined) continue
    const unwrapped = unwrap(key, wrapped)
    if (unwrapped === null) wrong.push(id)
    indexKey ??= unwrapped
  }
  if (wrong.length > 0) {
    const text = `The key ${named(wrong)} is not the one that encrypted the ${store.name} store under this id.`
    throw new EncryptionError(text, { details: { keys: wrong } })
  }
  if (indexKey === null) {
    const text = `The ${store.name} store is encrypted with ${named(Object.keys(marker.wraps))} (${given}).`
    throw new EncryptionError(text, { details: { keys: Object.keys(marker.wraps) } })
  }
  const missing = marker.writers.filter((id) => !keys.has(id) && !lost.includes(id))
  if (missing.length > 0) {
    const text = `The ${store.name} store holds data that ${named(missing)} encrypted (${given}).`
    throw new EncryptionError(text, { details: { keys: missing } })
  }
  return { ...marker, indexKey }
}

async function hasRecords(store: Store, call: Call): Promise<boolean> {
  const { rows } = await store.queries.list({ ended: true }, { limit: 1, cursor: null }, call)
  return rows.length > 0
}

/** Written only where it is still the one that was read. */
export async function writeMarker(store: Store, change: (marker: Marker) => Marker, call: Call): Promise<boolean> {
  const { record, marker } = await read(store, call)
  if (marker === null) return false
  const after = recordOf(change(marker), record)
  const request = { kind: 'replace', id: MARKER_ID, before: record, after } as const
  const { decision } = await store.claims.apply(request, call)
  return decision.kind === 'replaced'
}

/** One for every key that is configured; a key that was removed, and has written nothing that is left, opens nothing more. */
function wrapsFor(
  known: Marker | null,
  { keys }: CheckedEncryption,
  writers: readonly string[],
  indexKey: Uint8Array,
): Readonly<Record<string, string>> {
  const kept = Object.entries(known?.wraps ?? {}).filter(([id]) => keys.has(id) || writers.includes(id))
  const wraps = Object.fromEntries(kept)
  for (const [id, key] of keys) wraps[id] ??= wrap(key, indexKey)
  return wraps
}

function sameIds(a: Marker, b: Marker): boolean {
  const idsOf = ({ wraps, writers }: Marker) => JSON.stringify([Object.keys(wraps).toSorted(), writers.toSorted()])
  return idsOf(a) === idsOf(b)
}

/** Rounds for processes that start at the same moment. */
const TRIES = 20

/** Reads the marker, or makes it; adds the keys that are new to it. */
export async function openMarker(store: Store, encryption: CheckedEncryption, call: Call): Promise<OpenMarker> {
  const { writeWith, allowPlain } = encryption
  for (let tries = 0; tries < TRIES; tries++) {
    const { record, marker } = await read(store, call)
    const known = marker === null ? null : opened(store, marker, encryption)
    const indexKey = known?.indexKey ?? randomBytes(INDEX_KEY_BYTES)
    const plain = known?.plain ?? (await hasRecords(store, call))
    if (plain && !allowPlain) {
      const text = `The ${store.name} store has records that are not encrypted.`
      throw new EncryptionError(text, {
        next: 'Stop the processes without keys, start them with keys and `allowPlain` (ONCEONLY_ENCRYPTION_ALLOW_PLAIN=yes), run `onceonly rekey`, and remove it.',
      })
    }
    const writers = [...new Set([...(known?.writers ?? []), writeWith])]
    const wraps = wrapsFor(known, encryption, writers, indexKey)
    const wanted: Marker = {
      version: 1,
      wraps,
      writers,
      plain,
      columns: known?.columns ?? {},
      rooms: known?.rooms ?? [],
    }
    if (known !== null && sameIds(wanted, known)) return known
    const request = { kind: 'replace', id: MARKER_ID, before: record, after: recordOf(wanted, record) } as const
    const { decision } = await store.claims.apply(request, call)
    if (decision.kind === 'replaced') return { ...wanted, indexKey }
  }
  throw fought()
}
