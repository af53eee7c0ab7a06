import { canonicalValue } from '../ledger/core/canonical-value.ts'
import { fingerprintOf } from '../ledger/core/digest.ts'
import { OnceError } from '../ledger/core/errors.ts'
import type { RunDefinition } from './definition.ts'
import type { RunRow } from './entry.ts'
import { recordedText } from './recordable.ts'

interface Given {
  readonly runId: string
  readonly input: unknown
}

interface Start extends Partial<Pick<RunRow, 'parent' | 'ifParentEnds' | 'forkedFrom' | 'continues'>> {
  /** The worker that drives it from its first moment; null when it is due for any worker. */
  readonly worker: string | null
  readonly now: number
  /** The run that it repeats. */
  readonly restarts?: string | null
}

/** The row of a run that is about to start. */
export function newRun(
  { name, version, timeoutMs }: Pick<RunDefinition, 'name' | 'version' | 'timeoutMs'>,
  given: Given,
  { worker, now, restarts = null, parent = null, ifParentEnds = null, forkedFrom = null, continues = null }: Start,
): RunRow {
  return {
    id: given.runId,
    definition: name,
    version,
    state: 'running',
    ...inputOf(given),
    result: null,
    failure: null,
    worker,
    // A run without a worker is taken later, and then its fence moves.
    fence: worker === null ? 0 : 1,
    dueAt: worker === null ? now : null,
    takenAt: worker === null ? null : now,
    takenBefore: null,
    startedAt: now,
    endedAt: null,
    restarts,
    takeovers: 0,
    timeoutMs,
    deadlineAt: timeoutMs === null ? null : now + timeoutMs,
    queue: null,
    parent,
    ifParentEnds,
    cancelledAt: null,
    timedOut: false,
    forkedFrom,
    continues,
    continuedAs: null,
  }
}

/** The input as it is kept, and as it is compared: the order of members does not count. */
export function inputOf({ runId, input }: Given): Pick<RunRow, 'input' | 'inputFingerprint'> {
  const text = recordedText(`The input of ${runId}`, input)
  try {
    return { input: text, inputFingerprint: fingerprintOf(canonicalValue(JSON.parse(text)), 1) }
  } catch (cause) {
    throw new OnceError('bad_input', `The input of ${runId} cannot be compared.`, { cause })
  }
}

/** `order-7`, `order-7#2`, `order-7#3`: each names the one before it, and starting it twice is starting it once. */
export function nextId({ id, restarts, continues }: Pick<RunRow, 'id' | 'restarts' | 'continues'>): string {
  // A number that the caller gave, as in `invoice#7`, is not ours to count on.
  const isNumbered = restarts !== null || continues !== null
  const [, base = id, number = '1'] = (isNumbered ? /^(.*)#(\d+)$/.exec(id) : null) ?? []
  return `${base}#${Number(number) + 1}`
}
