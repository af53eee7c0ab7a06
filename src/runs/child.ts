import { decodeValue, encodeValue } from '../ledger/core/codec.ts'
import { OnceError } from '../ledger/core/errors.ts'
import type { Failure } from '../ledger/core/verdict.ts'
import type { Place } from './branch.ts'
import type { ChildResult, ChildWork } from './child-plan.ts'
import { childFailed, childIdOf, readChild } from './child-plan.ts'
import type { ChildOptions } from './context.ts'
import type { RunRow } from './entry.ts'
import { COPIED } from './entry.ts'
import { ERASED } from './erase.ts'
import { RunError } from './errors.ts'
import { begun } from './events.ts'
import type { Execution } from './execution.ts'
import { never } from './execution.ts'
import { withFailure } from './failures.ts'
import { checkId } from './names.ts'
import { newRun } from './new-run.ts'
import { diverged, storableFailure } from './problems.ts'
import type { Queue } from './queue.ts'
import { queuedRun } from './queued.ts'

/** Starts the child under this step, once, and returns its result; the parent leaves the memory meanwhile. */
export async function runChild(
  execution: Execution,
  place: Place,
  work: ChildWork,
  queue: Queue | null,
): Promise<unknown> {
  mustMatch(place, work)
  const { run, around } = execution
  const { plan, fingerprint } = work
  let entry = place.recorded
  if (entry?.state === 'succeeded') return readChild(entry.result ?? '').value
  if (entry?.state === 'failed') throw childFailed(entry)
  if (entry?.state === 'abandoned') return never()
  const childId = childIdOf(run.id, { ...place, plan })
  const fresh = childRun(execution, childId, work, queue)
  // One that a fork has copied has no child there.
  if (entry === null || entry.fingerprint === COPIED) {
    entry = execution.entry(place, { state: 'waiting', plan, fingerprint, dueAt: null })
    const started = await execution.start(entry, fresh)
    if (started) around.emit(begun(fresh))
  }
  if (entry.state === 'retrying') {
    entry = execution.entry(place, { ...entry, state: 'waiting', dueAt: null })
    await execution.resume(entry, fresh)
  }
  for (;;) {
    const heard = execution.heard()
    const child = await execution.acting(() => execution.insist(() => around.tree.lastOf(childId)))
    const end = endOf(child, fresh)
    if (end?.kind === 'succeeded') {
      const result = encoded({ runId: childId, value: end.value })
      await execution.put(execution.entry(place, { ...entry, state: 'succeeded', result }))
      return end.value
    }
    if (end?.kind === 'failed') {
      const failure = { ...end.failure, attempt: 1, at: around.nearNow(), definite: true }
      const failures = withFailure(entry.failures, failure)
      const failed = await execution.put(execution.entry(place, { ...entry, state: 'failed', failures }))
      throw childFailed(failed)
    }
    const woken = await execution.wait({ dueAt: null, unknown: false, heard }, place.branch.signal)
    // The race is decided, and no caller waits for this branch any more.
    if (woken === 'abandoned') return never()
  }
}

function mustMatch({ recorded, stepId, tick }: Place, { fingerprint, plan }: ChildWork): void {
  if (recorded === null || recorded.fingerprint === COPIED || recorded.fingerprint === fingerprint) return
  const side = (its: string | null) => ({ step: stepId, tick, plan: decodeValue(its ?? 'null') })
  throw diverged(`The child of ${stepId} is another one than was recorded.`, side(recorded.plan), side(plan))
}

function childRun(
  { run, around }: Execution,
  runId: string,
  { definition, options }: ChildWork,
  queue: Queue | null,
): RunRow {
  checkId('child', runId)
  const { ifParentEnds = 'cancel', queue: _, ...given } = options
  const now = around.nearNow()
  const of = { parent: run.id, ifParentEnds }
  if (queue !== null) return queuedRun(definition, { ...given, runId }, queue, now, of)
  return newRun(definition, { ...given, runId }, { worker: null, now, ...of })
}

/** The queue of a child; null for one that begins at once. */
export function queueOfChild({ run, around }: Execution, { queue: wanted }: ChildOptions<unknown>): Queue | null {
  if (wanted === undefined) return null
  const queue = around.queueOf(wanted)
  if (run.queue?.name !== queue.name || (queue.concurrency ?? queue.perKey) === null) return queue
  // It would wait for a place that its own parent has.
  const text = `A child of ${run.id} cannot wait in the queue ${queue.name}, in which its parent has a place.`
  throw new OnceError('bad_option', text, { next: 'Give it another queue, or none.' })
}

function encoded(result: ChildResult): string {
  const text = encodeValue(result)
  return 'text' in text ? text.text : ''
}

type ChildEnd =
  | { readonly kind: 'succeeded'; readonly value: unknown }
  | { readonly kind: 'failed'; readonly failure: Failure }

/** Null while it has not ended. */
function endOf(child: RunRow | null, wanted: RunRow): ChildEnd | null {
  if (child === null) {
    const error = new RunError('child_failed', `The child ${wanted.id} was removed from the store.`)
    return { kind: 'failed', failure: storableFailure(error, { runId: wanted.id, state: 'removed' }) }
  }
  const { id: runId, state, failure } = child
  if (child.definition === ERASED) {
    const error = new RunError('child_failed', `The child ${runId} was erased.`)
    return { kind: 'failed', failure: storableFailure(error, { runId, state: 'erased' }) }
  }
  const isOurs = child.parent === wanted.parent && child.definition === wanted.definition
  // One that continues another has an input of its own.
  if (!isOurs || (child.continues === null && child.inputFingerprint !== wanted.inputFingerprint)) {
    const text = `The run ${runId} was started by another caller, or with another definition or input.`
    return { kind: 'failed', failure: storableFailure(new RunError('run_conflict', text), { runId }) }
  }
  if (child.endedAt === null) return null
  if (state === 'succeeded') return { kind: 'succeeded', value: decodeValue(child.result ?? '') }
  const { name, code, message } = failure ?? { name: 'Error', message: 'no reason was recorded' }
  const text = state === 'cancelled' ? `The child ${runId} was cancelled.` : `The child ${runId} failed: ${message}`
  const details = { runId, state, ...(state === 'failed' ? { failure: { name, code, message } } : {}) }
  return { kind: 'failed', failure: storableFailure(new RunError('child_failed', text), details) }
}
