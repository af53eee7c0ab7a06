import type { Decision, Request } from '../../ledger/core/request.ts'

/** The result of a call, as its process saw it. */
export type Result =
  | { readonly kind: 'ok'; readonly decision: Decision; readonly now: number }
  /** It certainly changed nothing. */
  | { readonly kind: 'fail' }
  /** Unknown: it may have happened at any time since, it may still happen, or never. */
  | { readonly kind: 'info' }

/** One request to a store and its answer. Both times come from one clock that all processes share. */
export interface HistoryEvent {
  readonly process: string
  readonly request: Request
  readonly startedAt: number
  readonly endedAt: number
  readonly result: Result
}
