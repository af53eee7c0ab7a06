/** The core entry of `onceonly`. Names are listed one by one: what is not here is not public. */

export type { ErrorCode } from './errors.ts'
export { isOnceError, OnceError } from './errors.ts'
export type { BeginOptions, CallOptions } from './ledger/begin.ts'
export type { Claimed, ClaimOptions, Lease } from './ledger/claim.ts'
export type { Fence, Identity, IdentityParts } from './ledger/core/identity.ts'
export { DAY, defaults, HOUR, limits, MINUTE, SECOND } from './ledger/core/limits.ts'
export type {
  GuardNote,
  HistoryEntry,
  LedgerRecord,
  Outcome,
  Pointer,
  State,
  VisibleState,
} from './ledger/core/record.ts'
export type { Failure } from './ledger/core/verdict.ts'
export { final, notDone, released, singleCall } from './ledger/core/verdict.ts'
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
export type { EffectContext, TransactionContext } from './ledger/effect-context.ts'
export type { LedgerEvent, Listener } from './ledger/events.ts'
export type { FencedWrite } from './ledger/fenced.ts'
export { fencedWrite } from './ledger/fenced.ts'
export type { Begun, Ended, Ending, Granted } from './ledger/granted.ts'
export { failed, succeeded } from './ledger/granted.ts'
export type { Ledger, LedgerOptions, LedgerScope } from './ledger/ledger.ts'
export { createLedger } from './ledger/ledger.ts'
export type { LeasedOperation, Operation, TransactionalOperation } from './ledger/operation.ts'
export type { Erased, Operator, OperatorOptions } from './ledger/operator.ts'
export { rerun } from './ledger/operator.ts'
export type { Execution } from './ledger/present.ts'
export { encryptionFromEnv } from './ledger/store/encryption/env.ts'
export type { Encryption } from './ledger/store/encryption/options.ts'
export type { EncryptionStatus, Rekeyed, StoreEncryption } from './ledger/store/encryption/status.ts'
export type { OutboxMessage, OutboxPort } from './ledger/store/outbox.ts'
export type {
  BusyCaller,
  Page,
  RecordFilter,
  RecordView,
  SqlStore,
  StateCounts,
  Store,
  TransactionalStore,
} from './ledger/store/port.ts'
export type { Script, SqlRow, SqlTx, SqlValue } from './ledger/store/sql.ts'
export type { UniqueAnswer } from './ledger/unique.ts'
export type { Runtime } from './runtime/runtime.ts'
