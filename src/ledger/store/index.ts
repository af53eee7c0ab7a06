/** `onceonly/store`: the port of a store, and the rules that it decides by, for authors of stores. */

export type { ClaimId, Fence, Identity, RecordId } from '../core/identity.ts'
export type { HistoryEntry, LedgerRecord, Outcome, Pointer, State, VisibleState } from '../core/record.ts'
export { goneAtOf, wakesWaiters } from '../core/record.ts'
export type { Decision, DecisionOf, Request as StoreRequest } from '../core/request.ts'
export type { Moment as TransitionMoment, Step as TransitionStep } from '../core/transition.ts'
export { transition } from '../core/transition.ts'
export type {
  AppliedDecision,
  BusyCaller,
  Call as StoreCall,
  Claims,
  Page,
  Queries,
  RecordFilter,
  RecordTally,
  RecordView,
  Session as StoreSession,
  StateCounts,
  Store,
  StoreClock,
  Swept,
  Tally,
  TransactionalStore,
  TransactionCall,
  Transactions,
  Upkeep,
  Wake,
  Watch,
} from './port.ts'
