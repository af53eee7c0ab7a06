/** The core entry of `onceonly`. Names are listed one by one: what is not here is not public. */

export type { AppliedWord, ErrorCode } from './core/errors.ts'
export { errorTable, isOnceError, OnceError } from './core/errors.ts'
export type { Fence, Identity, IdentityParts } from './core/identity.ts'
export { DAY, defaults, HOUR, limits, MINUTE, SECOND } from './core/limits.ts'
export type { HistoryEntry, LedgerRecord, OnAbandoned, Outcome, Pointer, State, VisibleState } from './core/record.ts'
export type { Failure } from './core/verdict.ts'
export { classify, final, notDone, released } from './core/verdict.ts'
export type { Attempt } from './ledger/attempt.ts'
export type { Claimed, ClaimOptions, Ending, HowToWrite, Lease, SettleWord } from './ledger/claim.ts'
export { failed, succeeded } from './ledger/claim.ts'
export type {
  EffectKind,
  Keep,
  LeasedDefinition,
  ProbeAnswer,
  ProbedAttempt,
  ReplayRequest,
  TransactionDefinition,
  WhileRunning,
} from './ledger/definition.ts'
export { cannotTell, happened, notFound, prevented } from './ledger/definition.ts'
export type { LedgerEvent, Listener } from './ledger/events.ts'
export type { CallOptions } from './ledger/execute.ts'
export type { FencedWrite } from './ledger/fenced.ts'
export { fencedWrite } from './ledger/fenced.ts'
export type { Ledger, LedgerOptions, TxOf } from './ledger/ledger.ts'
export { createLedger } from './ledger/ledger.ts'
export type { LeasedOperation, TransactionalOperation } from './ledger/operation.ts'
export type { ActOptions, Operator } from './ledger/operator.ts'
export { rerun } from './ledger/operator.ts'
export type { Execution } from './ledger/present.ts'
export type { Runtime, Timer } from './ledger/runtime.ts'
export type { TransactionWork } from './ledger/transact.ts'
export type { UniqueAnswer } from './ledger/unique.ts'
export type { OutboxMessage, OutboxPort } from './store/outbox.ts'
export type {
  BusyCaller,
  Page,
  RecordFilter,
  RecordView,
  SqlStore,
  StateCounts,
  Store,
  TransactionalStore,
} from './store/port.ts'
export type { SqlRow, SqlTx, SqlValue } from './store/sql.ts'
