import { AsyncLocalStorage } from 'node:async_hooks'
import type { Runtime } from '../runtime/runtime.ts'
import type { AttemptLimit } from './attempt-limit.ts'
import type { ReplayCache } from './cache.ts'
import { OnceError } from './core/errors.ts'
import type { Identity, RecordId } from './core/identity.ts'
import type { Heart } from './effect-context.ts'
import type { Events } from './events.ts'
import type { Flights } from './flight.ts'
import type { Joiners } from './join.ts'
import type { Prober } from './probe.ts'
import type { Requests, Settler } from './requests.ts'
import type { OutboxPort } from './store/outbox.ts'
import type { AdoptedTransactions, Session, Store, Transactions } from './store/port.ts'
import type { TallyBook } from './tally.ts'

/**
 * Something put around a part of a command: a span, a stopwatch. It calls `work` once, and answers or throws what that
 * does.
 */
export interface Around {
  <T>(part: 'claim' | 'effect', command: CommandName, work: () => Promise<T>): Promise<T>
  /**
   * Where only the time of a part is wanted: called when a part is over, however it ended, and nothing has to be put around
   * it, which would make the ledger wait where there is nothing to wait for.
   */
  readonly took?: (part: 'claim' | 'effect', command: CommandName, ms: number) => void
}

/** A stopwatch only observes: its own faults change nothing. */
export function reportTime(
  { around, runtime }: Pick<Context, 'around' | 'runtime'>,
  part: 'claim' | 'effect',
  command: CommandName,
  sinceMs: number,
): void {
  try {
    around?.took?.(part, command, runtime.monotonicMs() - sinceMs)
  } catch {
    // What it could not note is missing from its figures.
  }
}

export const unwatched: Around = (_part, _command, work) => work()

/** Which command it is, and the id of its record. */
export interface CommandName {
  readonly id: RecordId
  readonly identity: Identity
}

/** The shared parts of one ledger. */
export interface Context {
  readonly store: Store
  /** Where effects of `transaction` operations run: the store's own, or those of an ORM; null where there are none. */
  readonly transactions: Transactions<unknown> | null
  /** Those of an ORM; null without one. */
  readonly orm: AdoptedTransactions<unknown> | null
  readonly runtime: Runtime
  readonly events: Events
  /** Null without an observer: then nothing is wrapped. */
  readonly around: Around | null
  readonly requests: Requests
  readonly heart: Heart
  readonly settler: Settler
  readonly joiners: Joiners
  readonly flights: Flights
  readonly cache: ReplayCache
  readonly tally: TallyBook
  readonly prober: Prober
  readonly attemptLimit: AttemptLimit
  /** Where effects add messages; null until one is made from the ledger. */
  outbox: OutboxPort<unknown> | null
  /** Set once: no new command is accepted any more. */
  readonly life: { stopped: boolean }
}

/** The transaction that the current effect runs in. It follows the effect through its awaits. */
export class OpenTransaction {
  readonly store: Store
  /** In a part with a handle of its own: that of the part. */
  session: Session<unknown>
  #open = true
  #ending: AbortController | null = null
  readonly #reason: () => OnceError

  constructor(store: Store, session: Session<unknown>, reason: () => OnceError) {
    this.store = store
    this.session = session
    this.#reason = reason
  }

  get open(): boolean {
    return this.#open
  }

  /** Fires when it ended, also when the store ended it under a running effect. Made when it is read: few effects do. */
  get signal(): AbortSignal {
    const made = this.#ending
    if (made !== null) return made.signal
    this.#ending = new AbortController()
    if (!this.#open) this.#ending.abort(this.#reason())
    return this.#ending.signal
  }

  /** Throws once it is over. */
  check(): void {
    if (!this.#open) throw this.#reason()
  }

  end(): void {
    if (!this.#open) return
    this.#open = false
    this.#ending?.abort(this.#reason())
  }
}

const current = new AsyncLocalStorage<OpenTransaction>()

export function openTransaction(): OpenTransaction | null {
  const transaction = current.getStore()
  // Work that an effect left running after its transaction ended is not inside it any more.
  return transaction?.open === true ? transaction : null
}

export function inTransaction<T>(transaction: OpenTransaction, work: () => Promise<T>): Promise<T> {
  return current.run(transaction, work)
}

/** A lease taken inside an open transaction would wait for the writer that this very transaction holds. */
export function nestedClaim(operation: string): OnceError {
  const text = `${operation} cannot claim a lease inside an open transaction: they commit apart.`
  return new OnceError('nested_claim', text)
}

export function refuseInsideTransaction(operation: string): void {
  if (openTransaction() !== null) throw nestedClaim(operation)
}

export function stopped(): OnceError {
  return new OnceError('stopped', 'The ledger was stopped.')
}
