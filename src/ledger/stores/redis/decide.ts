import { OnceError } from '../../core/errors.ts'
import type { Fence, RecordId } from '../../core/identity.ts'
import type { InProgress, Pointer } from '../../core/record.ts'
import type { Request, SettleRequest } from '../../core/request.ts'
import { transition } from '../../core/transition.ts'
import { runningUnder } from '../../core/transition-parts.ts'
import type { Deadline } from '../../store/deadline.ts'
import type { Applied, AppliedDecision } from '../../store/port.ts'
import { applyArguments, applyScript } from './apply-script.ts'
import type { Core, Reply } from './core.ts'
import type { Bucket } from './names.ts'
import { BUCKETS_MOST } from './names.ts'
import type { Swap } from './swap-script.ts'
import { swapArguments, swapScript } from './swap-script.ts'
import { decodeRecord } from './value.ts'

export interface PackTools {
  readonly core: Core
  readonly bucket: Bucket
  readonly deadline: Deadline
  /** Filled as rows are decided, so that what was decided before a failure is not lost. */
  readonly answers: Map<RecordId, Applied>
}

interface Change {
  readonly request: Request
  readonly applied: AppliedDecision
  readonly swap: Swap
}

/** Rounds for records that others keep changing; more than a few is a fight, and its callers come again later. */
const ROUNDS = 16

/**
 * Decides requests of one bucket. The script decides what is usual; for the rest it returns what is stored, `transition`
 * decides here, and the result is written if the record has not changed since.
 */
export async function decidePack(tools: PackTools, requests: readonly Request[]): Promise<void> {
  const { core, bucket, deadline, answers } = tools
  let left = requests
  for (let round = 0; round < ROUNDS && left.length > 0; round++) {
    // 1. The usual is done, the rest is read.
    const { ordered, args: asked } = applyArguments(left)
    const keys = ordered.map(({ id }) => bucket.record + id)
    const reply = await core.run(applyScript, bucket, { keys, args: asked }, deadline)
    const changes = takeAnswers(ordered, reply, answers)
    if (changes.length === 0) return
    // 2. What `transition` changed is written, where the record has not changed since.
    const swapKeys = changes.map(({ request }) => bucket.record + request.id)
    const args = changes.flatMap(({ swap }) => swapArguments(swap))
    const swapped = await core.run(swapScript, bucket, { keys: swapKeys, args }, deadline)
    for (const [index, { request, applied }] of changes.entries()) {
      if (swapped.answers[index] === 1) answers.set(request.id, applied)
    }
    // 3. Requests that lost this race are decided again.
    left = left.filter(({ id }) => !answers.has(id))
  }
  const fault = new OnceError('store_busy', 'Other processes changed the record again and again.', { applied: 'no' })
  for (const { id } of left) answers.set(id, { error: fault })
}

/** Keeps what is decided, and returns what has to be written first. */
function takeAnswers(requests: readonly Request[], reply: Reply, answers: Map<RecordId, Applied>): Change[] {
  const { now } = reply
  const changes: Change[] = []
  for (const [index, request] of requests.entries()) {
    const found = reply.answers[index]
    const usual = usualAnswer(request, found, now)
    if (usual !== null) {
      answers.set(request.id, usual)
      continue
    }
    const stored = typeof found === 'string' ? found : null
    const before = stored === null ? null : decodeRecord(request.id, stored)
    const fence = fenceFor(reply.nextFence + changes.length * BUCKETS_MOST, before?.fence ?? 0)
    const { record, decision } = transition(before, request, { now, fence })
    const applied = { record, decision, now }
    if (record === null || record === before) answers.set(request.id, applied)
    else changes.push({ request, applied, swap: { stored, before, after: record, now, fence } })
  }
  return changes
}

/** A record that outlived a loss of the counter may carry a larger fence than that; its fences must still grow. */
function fenceFor(next: Fence, stored: Fence): Fence {
  return next > stored ? next : stored + BUCKETS_MOST
}

/** What the script did by itself, as a decision of `transition`; null where it did nothing. */
function usualAnswer(request: Request, found: unknown, now: number): AppliedDecision | null {
  if (typeof found === 'number') {
    if (request.kind === 'settle') return settled(request, [String(found), ''], now)
    const { record, decision } = transition(null, request, { now, fence: found })
    return { record, decision, now }
  }
  if (!Array.isArray(found)) return null
  if (request.kind === 'settle') return settled(request, found as [awaited: string, pointer: string], now)
  const [value] = found as [string]
  return { record: decodeRecord(request.id, value), decision: { kind: 'applied', recordLost: false }, now }
}

/** The record was the one of the grant, with the pointer that it had. */
function settled(request: SettleRequest, [awaited, pointer]: [string, string], now: number): AppliedDecision {
  const attached = pointer === '' ? null : (JSON.parse(pointer) as Pointer)
  const before: InProgress = { ...runningUnder(request.grant), pointer: attached, awaited: awaited === '1' }
  const { record, decision } = transition(before, request, { now, fence: request.grant.fence })
  return { record, decision, now }
}
