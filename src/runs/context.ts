import type { OrmTransactions } from '../ledger/store/orm.ts'
import type { SqlTx } from '../ledger/store/sql.ts'
import type { Channel } from './channel.ts'
import type { Attributes, IfParentEnds, Queue } from './entry.ts'
import type { StepContext, TransactionStepContext, Verified } from './step-context.ts'

export interface RetryPolicy {
  /** Of the step, the first one included. */
  readonly attempts?: number
  readonly backoff?: 'exponential' | 'fixed'
  readonly baseMs?: number
  readonly capMs?: number
}

/** Places of the input or plan that may be another thing each time, as `$.sentAt` or `$.items[*].at`: not compared. */
type Unstable = readonly string[]

interface CommonOptions {
  /**
   * How often a failed attempt is repeated, and with which pauses.
   * @default five attempts, from 1 s to 5 minutes apart
   */
  readonly retry?: RetryPolicy
  /** How long one attempt may take before its `signal` fires. @default 60_000 */
  readonly timeoutMs?: number
  /** Compared with what was recorded: another input under the same key is a divergence. @default not compared */
  readonly input?: unknown
  /** Parts of the recorded value that may differ in a replay. @default none */
  readonly unstable?: Unstable
}

/** `keyed`: repeated under its key until it has a result. `once`: an attempt without a recorded end is `unknown`. */
export interface PlainOptions extends CommonOptions {
  /** What an attempt without a recorded end means: repeat under the same key, or `unknown`. @default 'keyed' */
  readonly semantics?: 'keyed' | 'once'
}

/** Asked before acting again, whenever the end of an attempt is not known. */
export interface VerifyOptions<T> extends CommonOptions {
  /** `verify` is called before the step acts again. */
  readonly semantics: 'verify'
  /** Finds out whether an earlier attempt had its effect. */
  verify(context: StepContext): Promise<Verified<T>>
}

export interface TransactionOptions extends CommonOptions {
  /** The step's writes and its journal entry commit together. */
  readonly semantics: 'transactional'
}

/** Evaluation and action apart: the function says what to send, and to whom; the channel sends it. */
export interface ChannelOptions<P, R> {
  /** What performs it: `httpChannel`, or a channel of your own. */
  readonly channel: Channel<P, R>
  /**
   * How often a failed attempt is repeated, and with which pauses.
   * @default five attempts, from 1 s to 5 minutes apart
   */
  readonly retry?: RetryPolicy
  /** How long one attempt may take, in milliseconds, before its `signal` fires. @default 60_000 */
  readonly timeoutMs?: number
  /** Parts of the recorded plan that may differ in a replay. @default none */
  readonly unstable?: Unstable
}

/** `plan` is pure and may be evaluated again by a replay; `act` performs it. */
export interface PlannedStep<P, R> extends Pick<CommonOptions, 'retry' | 'timeoutMs' | 'unstable'> {
  readonly semantics?: 'keyed' | 'once'
  plan(): P
  act(plan: P, context: StepContext): R | Promise<R>
}

export interface ChildOptions<I> {
  /** What the body of the child gets; plain data. */
  readonly input: I
  /** The id of the child's run. @default made of the parent's id and the place in it */
  readonly id?: string
  /**
   * What becomes of the child when this run ends before it, or when its branch loses a race: it is cancelled, with its own
   * children, or it continues by itself.
   * @default 'cancel'
   */
  readonly ifParentEnds?: IfParentEnds
  /** The queue in which the child waits until it may begin: what defineQueue returned, or its name. @default none */
  readonly queue?: Queue | string
  /** The run's key in that queue: keys take turns, and `perKey` limits each of them. @default none */
  readonly key?: string
  /** Higher ones begin first in that queue. @default that of the queue */
  readonly priority?: number
}

export type Received<T> =
  | { readonly kind: 'received'; readonly payload: T }
  /** The signal did not come in time. */
  | { readonly kind: 'timed_out' }

type Branches<Tx> = Readonly<Record<string, (run: RunContext<Tx>) => Promise<unknown>>>
type Results<B extends Branches<never>> = { readonly [Name in keyof B]: Awaited<ReturnType<B[Name]>> }
type Won<B extends Branches<never>> = {
  [Name in keyof B]: { readonly winner: Name; readonly value: Awaited<ReturnType<B[Name]>> }
}[keyof B]

/** A durable function: its steps are recorded, so that any worker can continue where another one stopped. */
export interface RunDefinition<I = unknown, O = unknown> {
  /** Part of every stored run: changing it leaves older runs without a definition. */
  readonly name: string
  /** A run remembers the version under which it was started. */
  readonly version: number
  /** How long a run may take before it fails, in milliseconds; null for as long as it wants. */
  readonly timeoutMs: number | null
  /** The function that awaits its steps. */
  readonly body: RunBody<I, O>
  /** The ORM of the ledger, for transactional steps that get its handle. @default none: they get `tx.query` */
  readonly transactions?: OrmTransactions<unknown>
}

export type RunBody<I, O, Tx = SqlTx> = (run: RunContext<Tx>, input: I) => Promise<O>

/** What the body of a run holds. Everything that is not deterministic goes through it, and is recorded. */
export interface RunContext<Tx = SqlTx> {
  readonly runId: string
  /** Fires when this branch lost a race, or the run is not this worker's any more. */
  readonly signal: AbortSignal
  step<T>(id: string, act: (context: StepContext) => T | Promise<T>): Promise<T>
  step<T>(id: string, options: VerifyOptions<T>, act: (context: StepContext) => T | Promise<T>): Promise<T>
  step<T>(id: string, options: TransactionOptions, act: (context: TransactionStepContext<Tx>) => Promise<T>): Promise<T>
  step<P, R>(id: string, options: ChannelOptions<P, R>, evaluate: () => P): Promise<R>
  step<P, R>(id: string, planned: PlannedStep<P, R>): Promise<R>
  step<T>(id: string, options: PlainOptions, act: (context: StepContext) => T | Promise<T>): Promise<T>
  /** Durable: the process may end meanwhile. */
  sleep(id: string, ms: number): Promise<void>
  waitFor<T = unknown>(name: string, options?: { readonly timeoutMs?: number }): Promise<Received<T>>
  /**
   * Starts another run, once, and returns its result. The child has a journal of its own, and any process may drive it; this
   * run leaves the memory meanwhile. Throws `child_failed` when the child failed or was cancelled.
   */
  child<I, O>(definition: RunDefinition<I, O>, options: ChildOptions<I>): Promise<O>
  /**
   * Declares what to do when the run is cancelled, with steps of its own; awaited, it is recorded. Declare it before the
   * step that it undoes. After a cancel the body is followed as far as it came, and then its clean-ups run, the last
   * declared first.
   */
  onCancel(id: string, cleanUp: (run: RunContext<Tx>) => Promise<unknown>): Promise<void>
  /**
   * Publishes a value: recorded, in order, and once, whatever happens to the process. Read it by `handle.events`, or over
   * HTTP with `eventsResponse`.
   */
  emit(name: string, value: unknown): Promise<void>
  /** Sets what the run is found by in `engine.list`; null removes an attribute. */
  setAttributes(attributes: Attributes): Promise<void>
  /**
   * Ends this run and starts the next one of its definition, with an empty journal: for runs that would never end. Signals
   * that were not taken and attributes go with it, and callers that wait for the result get that of the last one. Never returns.
   */
  continueAsNew(input: unknown): Promise<never>
  /** Branches side by side, each with steps of its own. When some fail, the first by name is thrown after all ended. */
  all<B extends Branches<Tx>>(id: string, branches: B): Promise<Results<B>>
  /** The first branch that succeeds; it is recorded, and the others are abandoned. */
  race<B extends Branches<Tx>>(id: string, branches: B): Promise<Won<B>>
  now(): number
  random(): number
  uuid(): string
  /** True for runs that came here with code that knows this change, false for those that had passed before. */
  version(name: string): boolean
}
