import { encodeValue } from '../ledger/core/codec.ts'
import { OnceError } from '../ledger/core/errors.ts'
import { exceedsBytes } from '../ledger/core/identity.ts'
import { limits } from '../ledger/core/limits.ts'
import type { Failure } from '../ledger/core/verdict.ts'
import { failureOf } from '../ledger/core/verdict.ts'
import type { Entry } from './entry.ts'
import { RunError } from './errors.ts'

export function stepFailed(entry: Entry): OnceError {
  const last = entry.failures.at(-1)
  const text = `The step ${entry.stepId} failed after ${entry.attempts} attempts: ${last?.message ?? 'no reason given'}.`
  const { key, stepId: step, tick, attempts, failures } = entry
  return new RunError('step_failed', text, { details: { step, tick, key, attempts, failures } })
}

/** What was thrown, as it can be written down: data that is too large, or no data at all, is left out. */
export function storableFailure(error: unknown, more?: unknown): Failure {
  const { data = more, ...failure } = failureOf(error)
  if (data === undefined) return failure
  const encoded = encodeValue(data)
  if ('problem' in encoded || exceedsBytes(encoded.text, limits.failureDataBytes)) return failure
  return { ...failure, data: JSON.parse(encoded.text) as unknown }
}

/** Of this run, here: a step may fail with the same code, when it looks at other runs. */
export class Divergence extends RunError<'run_diverged'> {}

/** Where the recorded run and the present code diverge: both sides, so that a reader can see which one is wrong. */
export function diverged(
  what: string,
  recorded: Readonly<Record<string, unknown>> | null,
  found: Readonly<Record<string, unknown>> | null,
): Divergence {
  return new Divergence('run_diverged', what, { details: { recorded, found } })
}

export function neverCame({ stepId: step, tick, kind }: Entry): OnceError {
  return diverged(`The run ended without coming to ${step}, which was recorded.`, { step, tick, kind }, null)
}

export function wonLater({ stepId: step, tick }: Entry, winner: string): OnceError {
  const text = `All branches of ${step} failed when it was recorded, and now ${winner} succeeds.`
  return diverged(text, { step, tick, winner: null }, { step, tick, winner })
}

export function overlaps(branch: string, pending: string, id: string): OnceError {
  const where = branch === '' ? 'the run' : `the branch ${branch}`
  return new RunError('step_overlaps', `${id} was started while ${pending} of ${where} is pending.`, {
    details: { branch, pending, id },
  })
}

export function tooLong(runId: string, step: string, most: string): OnceError {
  return new RunError('run_too_long', `The journal of ${runId} has ${most}, and no room for ${step}.`, {
    details: { runId, step, most },
  })
}

export function timedOutFailure(): Failure {
  const message = 'It did not end within its `timeoutMs`. Steps under way were left, and may have happened.'
  return { name: 'Error', code: 'run_timed_out', message }
}

export function noSuchRun(runId: string): OnceError<'not_found'> {
  return new OnceError('not_found', `There is no run ${runId}.`, { next: 'Check the `runId`.', details: { runId } })
}

export function endedLongAgo(runId: string): OnceError<'not_found'> {
  const text = `The run ${runId} ended too long ago: its results are not kept any more.`
  return new OnceError('not_found', text, { next: 'Start another run under a new `runId`.', details: { runId } })
}

export function stillRunning(runId: string, state = 'running'): OnceError<'in_progress'> {
  const next = 'Ask for its `result` again; the run continues by itself.'
  return new OnceError('in_progress', `The run ${runId} is ${state}.`, { next, details: { runId } })
}

export function notResolvable(text: string): OnceError<'not_resolvable'> {
  return new OnceError('not_resolvable', text, { next: 'Look at the state of the run with `view` first.' })
}
