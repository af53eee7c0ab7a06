import { AsyncLocalStorage } from 'node:async_hooks'
import { isOnceError } from '../../ledger/core/errors.ts'
import type { Pointer } from '../../ledger/core/record.ts'
import { final, isVerdict, released } from '../../ledger/core/verdict.ts'
import type { EffectContext, TransactionContext } from '../../ledger/effect-context.ts'
import type { Execution } from '../../ledger/present.ts'
import type { Early } from './early.ts'
import type { Answer, Captured } from './exchange.ts'
import type { Finality } from './finality.ts'
import { meaningOf } from './finality.ts'
import type { KeepRules, StoredAnswer } from './record.ts'
import { storedAnswer } from './record.ts'

interface RouteAnswer {
  /** The answer says that nothing was done: the claim is given back, whatever its status is. */
  notDone(): void
}

export type LeasedRouteContext = EffectContext & RouteAnswer

/** On a `transaction` route: what is written through it commits with the answer's record, or not at all. */
export type TransactionRouteContext<Tx> = TransactionContext<Tx> & RouteAnswer

/** What a handler is given while its request is protected: the context of every effect, and `notDone`. */
export type RouteContext<Tx> = LeasedRouteContext | TransactionRouteContext<Tx>

/** A handler that runs under a claim. */
export interface Running<Tx> {
  readonly kind: 'run'
  readonly context: RouteContext<Tx>
  /** The caller prefers a 202 to a long wait; null where it does not, or the route offers none. */
  readonly early: Early | null
  /** Starts the handler where the ledger sees the transaction that it is in. */
  inside<T>(work: () => T): T
  /**
   * Records the outcome, before the last byte of the answer leaves. Null says that it may leave; an answer is to be
   * sent in its place, because what the handler answered did not come true. Never rejects.
   */
  finish(captured: Captured, thrown?: unknown): Promise<Answer | null>
  /** There is no answer, or it was cut in the middle by its handler. Never rejects. */
  fail(error: unknown): Promise<void>
}

/** The meeting point of the ledger's effect and the framework's handler: the effect is "the handler has answered". */
export interface Meeting<Tx> {
  effect(work: TransactionContext<Tx> | EffectContext): Promise<StoredAnswer>
}

/** The effect has begun: it ends when `ended` is settled, with what the handler answered. */
export interface Begin<Tx> {
  readonly work: TransactionContext<Tx> | EffectContext
  readonly inside: <T>(work: () => T) => T
  readonly ended: PromiseWithResolvers<StoredAnswer>
}

/** The database undid a transaction that its handler had answered: a handler cannot be run a second time. */
export class HandlerRanAlready extends Error {}

const atOnce = <T>(work: () => T): T => work()

/** @param started is told when the ledger begins the effect, once at most */
export function createMeeting<Tx>(left: () => boolean, started: (begin: Begin<Tx>) => void): Meeting<Tx> {
  let begun = false
  return {
    effect(work) {
      // Whoever asked for it is gone, so that nobody would run the handler. Twins that wait decide anew.
      if (left()) return Promise.reject(released(new Error('The client hung up before its handler began.')))
      if (begun) return Promise.reject(new HandlerRanAlready('The transaction was rolled back by its database.'))
      begun = true
      const ended = Promise.withResolvers<StoredAnswer>()
      // Nobody may be waiting yet, or any more: a rejection belongs to the ledger's effect alone.
      ended.promise.catch(() => {})
      // Only a transaction is found through its context, and a snapshot of that takes microseconds.
      started({ work, ended, inside: 'tx' in work ? AsyncLocalStorage.snapshot() : atOnce })
      return ended.promise
    },
  }
}

export interface RunRules {
  readonly finality: Finality
  readonly keep: KeepRules
  readonly transactional: boolean
  /** What is answered when a transaction did not commit. */
  undone(error: unknown): Answer
}

export function createRunning<Tx>(
  { work, inside, ended }: Begin<Tx>,
  execution: Promise<Execution<unknown>>,
  rules: RunRules,
  early: Early | null = null,
): Running<Tx> {
  const pointer = rules.keep.keep === 'pointer' ? namedBy(work) : () => work.pointer
  let marked = false
  /** What we threw into the effect: when it comes back, the ledger did what the handler's answer says. */
  let thrownIn: unknown

  function reject(verdict: unknown): void {
    thrownIn = isVerdict(verdict) ? verdict.error : verdict
    ended.reject(verdict)
  }

  function end(captured: Captured, thrown: unknown): void {
    // Made where it is needed: an error takes microseconds, and almost every answer is a success.
    const answered = () => answeredError(captured)
    const stored = () => storedAnswer(captured, rules.keep, pointer())
    if (marked) return reject(released(answered()))
    // A verdict that was thrown says more than the status that a framework made of it.
    if (isVerdict(thrown)) return reject(thrown.verdict === 'final' ? final(answered(), { answer: stored() }) : thrown)
    switch (meaningOf(captured, rules.finality)) {
      case 'succeeded':
        return ended.resolve(stored())
      case 'refused':
        return reject(final(answered(), { answer: stored() }))
      case 'released':
        return reject(released(answered()))
      case 'fault':
        // Whatever was thrown may prove that nothing was sent; the ledger knows.
        return reject(thrown ?? answered())
    }
  }

  /** A leased effect has happened, whatever became of its record. A transaction has not, if it did not commit. */
  function outcome(execution: Execution<unknown>): Answer | null {
    if (!rules.transactional || execution.kind !== 'refused') return null
    const { error } = execution
    const ours = error === thrownIn || (error.code === 'not_done' && error.cause === thrownIn)
    return ours ? null : rules.undone(error)
  }

  const settled = execution.then(outcome, (error: unknown) =>
    !rules.transactional || error === thrownIn ? null : rules.undone(error),
  )
  return {
    kind: 'run',
    context: Object.assign(work, { notDone: () => void (marked = true) }),
    early,
    inside,
    finish(captured, thrown) {
      end(captured, thrown)
      return settled
    },
    async fail(error) {
      reject(marked ? released(error) : error)
      await settled
    },
  }
}

/** For operators: the status, and the code that the problem document of a refusal has. */
function answeredError(captured: Captured): Error {
  const error = new Error(`The handler answered ${captured.status}.`)
  const code = captured.status >= 400 ? problemCode(captured) : null
  return code === null ? error : Object.assign(error, { code })
}

/** Problem documents are small: what is larger is not read for its code. */
const PROBLEM_BYTES_MOST = 16 * 1_024

/** `code` of a JSON document, or the last part of its `type`; null where it has neither. */
function problemCode({ headers, body }: Captured): string | null {
  const type = headers.find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? ''
  if (!(body instanceof Uint8Array) || body.length > PROBLEM_BYTES_MOST || !type.includes('json')) return null
  try {
    const { code, type: uri } = JSON.parse(new TextDecoder().decode(body)) as Readonly<Record<string, unknown>>
    if (typeof code === 'string' && code !== '') return code
    return typeof uri === 'string' ? (uri.split(/[/#:]/).findLast((part) => part !== '') ?? null) : null
  } catch {
    return null
  }
}

/**
 * What the handler named. A name that the store could not be told in time is told with the answer: what it names exists,
 * and a retry that found neither a body nor a name would be refused for as long as the record is kept.
 */
function namedBy(context: EffectContext): () => Pointer | null {
  const { attach } = context
  let untold: Pointer | null = null
  Object.assign(context, {
    async attach(pointer: Pointer) {
      try {
        await attach(pointer)
        untold = null
      } catch (error) {
        if (!isOnceError(error, 'bad_input')) untold = pointer
        throw error
      }
    },
  })
  return () => untold ?? context.pointer
}
