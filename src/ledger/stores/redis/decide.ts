import { OnceError } from '../../core/errors.ts'
import type { Fence, RecordId } from '../../core/identity.ts'
import type { InProgress, Pointer } from '../../core/record.ts'
import type { Request, SettleRequest } from '../../core/request.ts'
import { transition } from '../../core/transition.ts'
import { runningUnder } from '../../core/transition-parts.ts'
import type { Applied, AppliedDecision } from '../../store/port.ts'
import { applyScript, orderedFor } from './apply-script.ts'
import type { CallDeadline } from './connection.ts'
import type { Core } from './core.ts'
import { wordsFor } from './core.ts'
import { storeError } from './errors.ts'
import { unfit } from './fit.ts'
import type { Bucket } from './names.ts'
import { BUCKETS_MOST } from './names.ts'
import { SHARED_ANSWERS } from './script.ts'
import type { Swap } from './swap-script.ts'
import { swapArguments, swapScript } from './swap-script.ts'
import { decodeRecord } from './value.ts'

export interface PackTools {
  readonly core: Core
  readonly deadline: CallDeadline
  /** Filled as requests are decided, so that what was decided before a failure is not lost. */
  readonly answers: Applied[]
}

/** Rows of one bucket, and where their answers belong. */
export interface Pack<Row extends { readonly id: RecordId }> {
  readonly bucket: Bucket
  readonly rows: Row[]
  readonly places: number[]
}

interface Change {
  readonly request: Request
  readonly place: number
  readonly applied: AppliedDecision
  readonly swap: Swap
}

/** Rounds for records that others keep changing; more than a few is a fight, and its callers come again later. */
const ROUNDS = 16

/**
 * Decides requests of one bucket. The script decides what is usual; for the rest it returns what is stored, `transition`
 * decides here, and the result is written if the record has not changed since.
 */
export async function decidePack(tools: PackTools, pack: Pack<Request>): Promise<void> {
  let left = fitting(tools, pack)
  try {
    for (let round = 0; round < ROUNDS && left.rows.length > 0; round++) {
      // 1. The usual is done, the rest is read.
      const changes = await applyPack(tools, left)
      if (changes.length === 0) return
      // 2. What `transition` changed is written, where the record has not changed since.
      // 3. Requests that lost this race are decided again.
      left = await swapChanges(tools, left.bucket, changes)
    }
    const fought = 'Other processes changed the record again and again.'
    fail(tools, left, new OnceError('store_busy', fought, { applied: 'no' }))
  } catch (error) {
    fail(tools, left, storeError(error, 'maybe'))
  }
}

/** Without the requests that the format cannot hold. */
function fitting({ answers }: PackTools, pack: Pack<Request>): Pack<Request> {
  if (!pack.rows.some(isUnfit)) return pack
  const left: Pack<Request> = { bucket: pack.bucket, rows: [], places: [] }
  for (const [index, request] of pack.rows.entries()) {
    const place = pack.places[index] as number
    const error = unfit(request)
    if (error !== null) {
      answers[place] = { error }
      continue
    }
    left.rows.push(request)
    left.places.push(place)
  }
  return left
}

const isUnfit = (request: Request): boolean => unfit(request) !== null

function fail({ answers }: PackTools, { places }: Pack<Request>, error: OnceError): void {
  for (const place of places) answers[place] ??= { error }
}

/** Keeps what is decided, and returns what has to be written first. */
async function applyPack({ core, deadline, answers }: PackTools, pack: Pack<Request>): Promise<Change[]> {
  const { bucket } = pack
  const { rows, places, addTo } = orderedFor(pack.rows, pack.places)
  const keys = rows.map(({ id }) => bucket.record + id)
  const words = wordsFor(applyScript, bucket, keys, core.names)
  addTo(words)
  const { now, nextFence, all } = await core.send(applyScript, bucket, words, deadline)
  const changes: Change[] = []
  for (let index = 0; index < rows.length; index++) {
    const request = rows[index] as Request
    const place = places[index] as number
    const found = all[SHARED_ANSWERS + index]
    const usual = usualAnswer(request, found, now)
    if (usual !== null) {
      answers[place] = usual
      continue
    }
    const stored = typeof found === 'string' ? found : null
    const before = stored === null ? null : decodeRecord(request.id, stored)
    const fence = fenceFor(nextFence + changes.length * BUCKETS_MOST, before?.fence ?? 0)
    const { record, decision } = transition(before, request, { now, fence })
    const applied = { record, decision, now }
    if (record === null || record === before) answers[place] = applied
    else changes.push({ request, place, applied, swap: { stored, before, after: record, now, fence } })
  }
  return changes
}

/** Returns the requests whose record has changed since it was read. */
async function swapChanges(tools: PackTools, bucket: Bucket, changes: readonly Change[]): Promise<Pack<Request>> {
  const { core, deadline, answers } = tools
  const keys = changes.map(({ request }) => bucket.record + request.id)
  const args = changes.flatMap(({ swap }) => swapArguments(swap))
  const swapped = await core.run(swapScript, bucket, { keys, args }, deadline)
  const left: Pack<Request> = { bucket, rows: [], places: [] }
  for (const [index, { request, place, applied }] of changes.entries()) {
    if (swapped.answers[index] === 1) {
      answers[place] = applied
      continue
    }
    left.rows.push(request)
    left.places.push(place)
  }
  return left
}

/** A record that outlived a loss of the counter may carry a larger fence than that; its fences must still grow. */
function fenceFor(next: Fence, stored: Fence): Fence {
  return next > stored ? next : stored + BUCKETS_MOST
}

/** What the script did by itself, as a decision of `transition`; null where it did nothing. */
function usualAnswer(request: Request, found: unknown, now: number): AppliedDecision | null {
  if (typeof found === 'number') {
    if (request.kind === 'settle') return settled(request, found === 1, null, now)
    const { record, decision } = transition(null, request, { now, fence: found })
    return { record, decision, now }
  }
  if (!Array.isArray(found)) return null
  if (request.kind === 'settle') {
    const [awaited, pointer] = found as [number, string]
    return settled(request, awaited === 1, JSON.parse(pointer) as Pointer, now)
  }
  const [value] = found as [string]
  return { record: decodeRecord(request.id, value), decision: { kind: 'applied', recordLost: false }, now }
}

/** The record was the one of the grant, with the pointer that it had. */
function settled(request: SettleRequest, awaited: boolean, pointer: Pointer | null, now: number): AppliedDecision {
  const usual = runningUnder(request.grant)
  const before: InProgress = awaited || usual.pointer !== pointer ? { ...usual, pointer, awaited } : usual
  const { record, decision } = transition(before, request, { now, fence: request.grant.fence })
  return { record, decision, now }
}
