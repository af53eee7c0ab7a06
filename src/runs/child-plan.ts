import { canonicalValue } from '../ledger/core/canonical-value.ts'
import { decodeValue } from '../ledger/core/codec.ts'
import { fingerprintOf } from '../ledger/core/digest.ts'
import type { OnceError } from '../ledger/core/errors.ts'
import { badOption, checkOptions } from '../ledger/core/option-names.ts'
import type { ChildOptions, RunDefinition } from './context.ts'
import type { Entry, IfParentEnds } from './entry.ts'
import { RunError } from './errors.ts'
import { checkId } from './names.ts'
import { checkPriority } from './queue.ts'
import { recordedText } from './recordable.ts'

/** What a body asks of a child, as it is recorded and compared. */
export interface ChildWork {
  readonly definition: Pick<RunDefinition, 'name' | 'version' | 'timeoutMs'>
  readonly options: ChildOptions<unknown>
  /** Encoded. The id stands in it only where the body gave one, so that a fork of the run can be compared. */
  readonly plan: string
  readonly fingerprint: string
}

const policies: readonly unknown[] = ['cancel', 'continue'] satisfies IfParentEnds[]

interface ChildPlan {
  readonly definition: string
  readonly input: unknown
  readonly id?: string
}

/** What is recorded of a child that succeeded. */
export interface ChildResult {
  readonly runId: string
  readonly value: unknown
}

export function childWork(definition: RunDefinition<never, unknown>, options: ChildOptions<unknown>): ChildWork {
  const { name, version, timeoutMs } = definition
  const known = { id: true, input: true, ifParentEnds: true, queue: true, key: true, priority: true } as const
  checkOptions('`run.child`', options, known)
  const { id, input, ifParentEnds = 'cancel', queue, key, priority } = options
  if (queue === undefined && (key ?? priority) !== undefined) {
    badOption('The child', key === undefined ? 'priority' : 'key', 'is for a child with a `queue`')
  }
  if (id !== undefined) checkId('child', id)
  if (!policies.includes(ifParentEnds)) badOption('The child', 'ifParentEnds', `is one of ${policies.join(', ')}`)
  if (key !== undefined) checkId('key of a queue', key)
  if (priority !== undefined) checkPriority('The child:', priority)
  const plan: ChildPlan = { definition: name, input, ...(id === undefined ? {} : { id }) }
  const text = recordedText(`The input of ${name}`, plan)
  const compared = canonicalValue(JSON.parse(text) as unknown)
  return { definition: { name, version, timeoutMs }, options, plan: text, fingerprint: fingerprintOf(compared, 1) }
}

/**
 * The id of a child without one of its own: the parent's, and the step's place in it. Neither sign can stand in the name of
 * a step, so that different places have different ids.
 */
export function childIdOf(parent: string, { stepId, tick, plan }: Pick<Entry, 'stepId' | 'tick' | 'plan'>): string {
  const given = plan === null ? undefined : (decodeValue(plan) as ChildPlan).id
  return given ?? `${parent}~${stepId}${tick === 0 ? '' : `,${tick + 1}`}`
}

/** The child of a recorded step: also of one that was copied from another run with its result. */
export function recordedChild(parent: string, entry: Entry): string {
  if (entry.result !== null) return readChild(entry.result).runId
  const failed = entry.failures.at(-1)?.data as { readonly runId?: string } | undefined
  return failed?.runId ?? childIdOf(parent, entry)
}

export function readChild(result: string): ChildResult {
  return decodeValue(result) as ChildResult
}

/** The same error each time the body comes here. */
export function childFailed({ stepId: step, tick, failures }: Entry): OnceError {
  const { message = `The child of ${step} failed.`, code, data } = failures.at(-1) ?? {}
  const details = { step, tick, ...(data as object | undefined) }
  return new RunError(code === 'run_conflict' ? 'run_conflict' : 'child_failed', message, { details })
}
