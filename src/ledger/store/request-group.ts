import type { Awaitable, Runtime } from '../../runtime/runtime.ts'
import type { OnceError } from '../core/errors.ts'
import { isOnceError } from '../core/errors.ts'
import type { DecisionOf, Request } from '../core/request.ts'
import { createGroupCommit } from './group-commit.ts'
import type { GroupOptions, Priority } from './group-options.ts'
import type { Applied, AppliedDecision, Call, Claims } from './port.ts'

/** The claims of a store that commits requests in groups. */
export interface GroupedClaims extends Claims {
  /** Calls back with the requests of every flush, for tests and measurements. */
  onFlush(listener: (requests: readonly Request[]) => void): void
}

/** The ledger's requests, committed in groups. */
export interface RequestGroup extends Pick<GroupedClaims, 'apply' | 'onFlush'> {
  /** Refuses further requests. Resolves when nothing waits and nothing is under way. */
  stop(): Promise<void>
}

/** Heartbeats first, then outcomes, then what starts something new: under pressure, running work must be able to end. */
const priority: Record<Request['kind'], Priority> = {
  renew: 0,
  start: 0,
  attach: 0,
  settle: 1,
  release: 1,
  claim: 2,
  reconcile: 2,
  probe: 2,
  resolve: 2,
  forget: 2,
  unique: 2,
  replace: 2,
}

/** What a row takes besides its outcome. */
const ROW_BYTES = 400

/** How requests share a flush, on every store: distinct ids in one order, and a bad or held row fails alone. */
export const requestRules = {
  keyOf: ({ id }: Request): string => id,
  priorityOf: ({ kind }: Request): Priority => priority[kind],
  sizeOf: (request: Request): number => {
    if (request.kind !== 'settle' || request.to.state === 'unknown') return ROW_BYTES
    return ROW_BYTES + (request.to.outcome.data?.length ?? 0)
  },
  errorOf: (answer: Applied): OnceError | null => ('error' in answer ? answer.error : null),
  isSpoiled: (error: unknown): boolean =>
    isOnceError(error) && error.applied === 'no' && (error.code === 'row_refused' || error.code === 'store_busy'),
  isHeld: (error: unknown): boolean => isOnceError(error, 'store_busy') && error.applied === 'no',
} satisfies Omit<GroupOptions<Request, Applied>, 'lanes' | 'flush'>

export interface RequestGroupOptions {
  /** Flushes under way at once. */
  readonly lanes: number
  /** Up to this many requests one flush is cheaper than two. @default 64 */
  readonly splitRows?: number
  /**
   * Decides every request by `transition`, atomically per record and durably, before it answers. The ids are
   * distinct and sorted, so that two processes lock rows in one order. When it rejects, the error's `applied` says
   * whether some of the requests may have taken effect.
   */
  flush(requests: readonly Request[], call: Call): Promise<readonly Applied[]>
  /** The error of requests after `stop`. */
  stopped(): OnceError
}

export function createRequestGroup(runtime: Runtime, options: RequestGroupOptions): RequestGroup {
  const { flush, stopped, ...shape } = options
  const group = createGroupCommit<Request, Applied>(runtime, {
    ...requestRules,
    ...shape,
    flush: (requests, timeoutMs) => flush(requests, { timeoutMs }),
  })
  return {
    // Each request was decided by the step of its own kind, and an error rejects.
    apply: <R extends Request>(request: R, { timeoutMs }: Call) =>
      group.write(request, timeoutMs) as Awaitable<AppliedDecision<DecisionOf<R>>>,
    onFlush: (listener) => group.onFlush(listener),
    stop: () => group.stop(stopped),
  }
}
