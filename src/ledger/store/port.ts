import type { Awaitable } from '../../runtime/runtime.ts'
import type { OnceError } from '../core/errors.ts'
import type { Fence, RecordId } from '../core/identity.ts'
import type { LedgerRecord, VisibleState } from '../core/record.ts'
import type { ClaimRequest, Decision, DecisionOf, Request, SettleRequest } from '../core/request.ts'
import type { StoreEncryption } from './encryption/status.ts'
import type { OrmTransactions } from './orm.ts'
import type { SqlSeam, SqlTx } from './sql.ts'
import type { Watch } from './watch.ts'

export type { Watch } from './watch.ts'

/** What a backend implements. Everything else in the library is written once, on top of this. */
export interface Store {
  /** For people: `sqlite`, `postgres`, … */
  readonly name: string
  readonly claims: Claims
  readonly queries: Queries
  readonly upkeep: Upkeep
  readonly clock: StoreClock
  /** Where effects can commit together with their record. */
  readonly transactions?: Transactions<unknown>
  /** Where its statements can run in transactions of an ORM. */
  readonly foreign?: ForeignTransactions
  /** Where other rooms may keep tables of their own. */
  readonly sql?: SqlSeam
  /** What is known of backups that were restored. */
  readonly restores?: Restores
  /** Of a store with keys: see the option `encryption` of the stores. */
  readonly encryption?: StoreEncryption
  /**
   * Gives back connections that are not in use; the next call takes new ones. Called by what ends its work on the store,
   * so that a pool can be ended without stopping the store as well.
   */
  rest?(): Promise<void>
  /** Waits for what is under way, then frees everything that the store made itself. */
  stop(): Promise<void>
}

export interface TransactionalStore<Tx> extends Store {
  readonly transactions: Transactions<Tx>
}

/** A store whose effects and rooms speak SQL. */
export interface SqlStore<Tx extends SqlTx = SqlTx> extends TransactionalStore<Tx> {
  readonly sql: SqlSeam
}

/** Every call has a deadline: past it the caller gets `store_unavailable`, whatever the backend does. */
export interface Call {
  readonly timeoutMs: number
}

/** What became of one request of several that a store decides together. A row that fails, fails alone. */
export type Applied<R extends Request = Request> = AppliedDecision<DecisionOf<R>> | { readonly error: OnceError }

export interface AppliedDecision<D extends Decision = Decision> {
  readonly decision: D
  /** The record after the request, or null when there is none. */
  readonly record: LedgerRecord | null
  /** The store's time of the decision. */
  readonly now: number
}

export interface Claims {
  /**
   * Decides the request by `transition`, atomically and durably, before it answers. When it rejects, the error's
   * `applied` says whether the request may have taken effect; repeating it is safe, because every request carries its
   * own claim id. A record that an open transaction holds is the store's to wait for, until the call's deadline.
   * A store that need not wait for anything answers at once, and throws at once: no promise is made then.
   */
  apply<R extends Request>(request: R, call: Call): Awaitable<AppliedDecision<DecisionOf<R>>>
  /** Reads without deciding anything; expired records are returned as they are stored. */
  read(
    ids: readonly RecordId[],
    call: Call,
  ): Promise<{ readonly now: number; readonly records: readonly (LedgerRecord | null)[] }>
  /** Wakes the waiters of a record, also across processes. A wake is a hint: it may be lost, or come for nothing. */
  watch(wake: Wake): Watch
}

/** Null stands for "any record may have changed". */
export type Wake = (ids: readonly RecordId[] | null) => void

export interface Transactions<Tx> {
  /**
   * Runs the work in one transaction. Rolls back when it throws, and rethrows. An error of the store itself is a
   * OnceError: `applied: 'no'` when it was rolled back for certain, `'maybe'` when the answer to COMMIT was lost.
   */
  run<T>(work: (session: Session<Tx>) => Promise<T>, call: TransactionCall): Promise<T>
}

export interface TransactionCall extends Call {
  /** How long a claim waits for a twin that holds the row in its own open transaction. */
  readonly lockMs: number
  /**
   * With an id, a running twin of that record is not waited for where the store can detect it: `store_busy` at once, with
   * `twin: true` in its details.
   */
  readonly refuseTwinOf: RecordId | null
  /**
   * The request that the work will apply first. A store may send it together with what begins the transaction; a row that
   * a twin holds is then reported like a running twin.
   */
  readonly claim?: ClaimRequest
}

export interface Session<Tx> {
  readonly tx: Tx
  /** The same transaction for tables of other rooms, where `tx` is the handle of an ORM. */
  readonly sql?: SqlTx
  /** Decides one request inside the transaction. */
  apply<R extends Request>(request: R): Promise<AppliedDecision<DecisionOf<R>>>
  /**
   * The same for the settle that is the last statement of the work: a store may send COMMIT together with it. Nothing of
   * the transaction can be used any more then, and an error says whether it may have been committed.
   */
  readonly settleLast?: ((request: SettleRequest) => Promise<AppliedDecision<DecisionOf<SettleRequest>>>) | undefined
  /**
   * Runs the last statements of the work that are not a settle, where the transaction began: in one of an ORM, whose end and
   * settings an effect can reach.
   */
  readonly last?: <T>(work: () => Promise<T>) => Promise<T>
  /** Undoes what the work wrote when it throws, and rethrows; the transaction itself continues. */
  savepoint<T>(work: () => Promise<T>): Promise<T>
  /** The same where an ORM gives every part of a transaction a handle of its own. */
  readonly part?: <T>(work: (inner: Session<Tx>) => Promise<T>) => Promise<T>
}

/** A savepoint, with the session that is to be used in it. */
export function inPart<Tx, T>(session: Session<Tx>, work: (inner: Session<Tx>) => Promise<T>): Promise<T> {
  return session.part === undefined ? session.savepoint(() => work(session)) : session.part(work)
}

/** Where a store can run its statements in transactions of an ORM. */
export interface ForeignTransactions {
  readonly dialect: OrmTransactions<never>['dialect']
  /** Refuses an ORM on another kind of database. */
  on<Handle>(orm: OrmTransactions<Handle>): AdoptedTransactions<Handle>
}

/** Transactions of one ORM, under the rules of the store. */
export interface AdoptedTransactions<Handle> extends Transactions<Handle> {
  /** In a transaction that is open already, and commits with it. When the work throws, only what it wrote is undone. */
  within<T>(handle: Handle, work: (session: Session<Handle>) => Promise<T>, call: TransactionCall): Promise<T>
  /** The transaction behind a handle, for tables of other rooms. */
  sqlOf(handle: Handle): SqlTx
}

export interface StoreClock {
  now(call: Call): Promise<number>
  /** Moves the store's time for every process on it. Refused unless the store was opened with a test clock. */
  advance(ms: number, call: Call): Promise<void>
}

/** How often a record was asked for again, by what was answered. */
export interface Repeats {
  /** Answered from the record. */
  readonly replays: number
  /** Refused, because the key came with another payload. */
  readonly conflicts: number
  /** Refused, because an attempt was still running. */
  readonly inProgress: number
}

export interface RecordView extends Repeats {
  readonly record: LedgerRecord
  /** When it was last asked for again; null when it never was. */
  readonly repeatedAt: number | null
}

export interface RecordFilter {
  readonly tenant?: string
  readonly caller?: string
  readonly operation?: string
  readonly key?: string
  readonly state?: VisibleState
  /** Only records claimed from here on, by the store's clock. */
  readonly since?: number
  /**
   * Only records that have this id anywhere: as their own, as their key, batch or effect key, as what they point to, or in
   * what their attempts noted. For lists; what a count makes of it is not defined.
   */
  readonly mentions?: string
  /**
   * Lists also what has expired, or was released or forgotten, as long as its trace is there. Counts leave them out.
   */
  readonly ended?: boolean
}

export interface Page<T> {
  readonly rows: readonly T[]
  /**
   * Pass it to the next call to continue; null at the end. A page may be short, or even empty, and still not be the
   * last.
   */
  readonly cursor: string | null
}

export type StateCounts = Readonly<Record<VisibleState, number>>

export interface BusyCaller extends Repeats {
  readonly tenant: string
  readonly caller: string
  readonly operation: string
  readonly claims: number
}

/**
 * The questions of operators and of the reconciler. Expired and vacant records are invisible to all of them, unless a
 * list asks for `ended`.
 */
export interface Queries {
  get(id: RecordId, call: Call): Promise<{ readonly now: number; readonly view: RecordView | null }>
  /** Newest first by fence, looking at a bounded number of rows per call. */
  list(
    filter: RecordFilter,
    page: { readonly limit: number; readonly cursor: string | null },
    call: Call,
  ): Promise<Page<RecordView>>
  count(filter: RecordFilter, call: Call): Promise<StateCounts>
  /**
   * Leases past their end and grace, oldest fence first, from a fence on. `next` is the fence to continue from: the low-water
   * mark, below which nothing is in progress any more. `now` is the store's time.
   */
  lapsed(
    from: Fence,
    limit: number,
    call: Call,
  ): Promise<{ readonly now: number; readonly rows: readonly LedgerRecord[]; readonly next: Fence }>
  unknowns(page: { readonly limit: number; readonly cursor: string | null }, call: Call): Promise<Page<LedgerRecord>>
  busiest(since: number, limit: number, call: Call): Promise<readonly BusyCaller[]>
}

export interface RecordTally extends Repeats {
  readonly id: RecordId
  /** How long ago the last of them was, when it is written. */
  readonly lastAgoMs: number
}

export interface Tally {
  readonly records: readonly RecordTally[]
  readonly callers: readonly BusyCaller[]
}

/** What one step of the sweep did. */
export interface Swept {
  /** Where to continue; null at the end. */
  readonly cursor: string | null
  /** Records that were looked at: no more than the limit, and fewer where they would have kept others waiting. */
  readonly looked: number
  readonly removed: number
  /** How long the step waited for its turn, where a store has turns. */
  readonly waitedMs?: number
}

export interface Upkeep {
  /**
   * Looks at a bounded number of records from the cursor on, removes those past their end, empties those past replay.
   */
  sweep(cursor: string | null, limit: number, call: Call): Promise<Swept>
  /** Adds to the counts; losing some is harmless. */
  tally(tally: Tally, call: Call): Promise<void>
}

/** From the moment that a backup shows to the moment of its return: what the store knew of this time is gone. */
export interface LostTime {
  readonly from: number
  readonly to: number
}

/** What a store knows of backups that were restored. */
export interface Restores {
  list(call: Call): Promise<readonly LostTime[]>
  /**
   * Writes it down under a fence that is above all that were ever granted, and answers what later ones are larger than.
   * From then on a claim under a lease is refused
   * (`key_expired`) when its key is a UUIDv7 of that time, it has no record, and its effect must not run twice.
   */
  add(from: number, call: Call): Promise<LostTime & { readonly fence: Fence; readonly newestBefore: Fence }>
}
