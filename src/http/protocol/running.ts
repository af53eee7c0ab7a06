import { isOnceError } from '../../ledger/core/errors.ts'
import type { Pointer } from '../../ledger/core/record.ts'
import { final, isVerdict, released } from '../../ledger/core/verdict.ts'
import type { EffectContext, TransactionContext } from '../../ledger/effect-context.ts'
import type { Ended, Granted } from '../../ledger/granted.ts'
import type { Execution } from '../../ledger/present.ts'
import type { Awaitable } from '../../runtime/runtime.ts'
import type { Early } from './early.ts'
import type { Answer, Captured } from './exchange.ts'
import type { Finality } from './finality.ts'
import { meaningOf } from './finality.ts'
import type { KeepRules, StoredAnswer } from './record.ts'
import { encodedAnswer, storedAnswer } from './record.ts'
import type { AskedAt } from './replay.ts'

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
   * sent in its place, because what the handler answered did not come true. Never rejects, and a promise only where the
   * store has to be waited for.
   */
  finish(captured: Captured, thrown?: unknown): Awaitable<Answer | null>
  /** There is no answer, or it was cut in the middle by its handler. Never rejects. */
  fail(error: unknown): Promise<void>
}

/** What all requests of a route share. */
export interface RunRules<N> {
  readonly finality: Finality
  readonly keep: KeepRules
  readonly transactional: boolean
  /** What is answered when a transaction did not commit. */
  undone(error: unknown, asked: AskedAt<N>): Answer
  /** What is answered when another attempt's outcome stands in the record, because this one did not commit. */
  recorded(execution: Execution<unknown>, asked: AskedAt<N>): Awaitable<Answer>
}

/** A granted claim as a route uses it. */
export type GrantedRoute<Tx> = Pick<Granted<EffectContext | TransactionContext<Tx>>, 'context' | 'inside' | 'settle'>

export class RunningRoute<N, Tx> implements Running<Tx> {
  declare readonly kind: 'run'
  declare readonly context: RouteContext<Tx>
  declare readonly early: Early | null
  declare private readonly granted: GrantedRoute<Tx>
  declare private readonly rules: RunRules<N>
  declare private readonly asked: AskedAt<N>
  declare private readonly pointer: (() => Pointer | null) | null
  /** Resolved for the early answer, which comes before the outcome; most routes have none. */
  declare private readonly recorded: PromiseWithResolvers<unknown> | null
  declare private over: Awaitable<Answer | null> | undefined
  declare private marked: boolean

  /** @param earlyOf makes the early answer, given when the outcome is recorded */
  constructor(
    granted: GrantedRoute<Tx>,
    rules: RunRules<N>,
    asked: AskedAt<N>,
    earlyOf: ((over: Promise<unknown>) => Early) | null,
  ) {
    this.kind = 'run'
    const context = granted.context as RouteContext<Tx> & { notDone: RouteAnswer['notDone'] }
    context.notDone = () => void (this.marked = true)
    this.context = context
    this.recorded = earlyOf === null ? null : Promise.withResolvers()
    this.early = earlyOf === null || this.recorded === null ? null : earlyOf(this.recorded.promise)
    this.granted = granted
    this.rules = rules
    this.asked = asked
    this.pointer = rules.keep.keep === 'pointer' ? namedBy(context) : null
    this.over = undefined
    this.marked = false
  }

  inside<T>(work: () => T): T {
    return this.granted.inside(work)
  }

  finish(captured: Captured, thrown?: unknown): Awaitable<Answer | null> {
    if (this.over === undefined) this.end(this.endedOf(captured, thrown))
    return this.over as Awaitable<Answer | null>
  }

  async fail(error: unknown): Promise<void> {
    if (this.over === undefined) this.end({ thrown: this.marked ? released(error) : error })
    await this.over
  }

  private end(ended: Ended): void {
    this.over = this.settled(ended)
    this.recorded?.resolve(this.over)
  }

  private endedOf(captured: Captured, thrown: unknown): Ended {
    if (this.marked) return { thrown: released(answeredError(captured)) }
    // A verdict that was thrown says more than the status that a framework made of it.
    if (isVerdict(thrown) && thrown.verdict !== 'final') return { thrown }
    const meaning = isVerdict(thrown) ? 'refused' : meaningOf(captured, this.rules.finality)
    switch (meaning) {
      case 'succeeded': {
        const value = this.stored(captured)
        return { value, encoded: encodedAnswer(value) }
      }
      case 'refused':
        return { thrown: final(answeredError(captured), { answer: this.stored(captured) }) }
      case 'released':
        return { thrown: released(answeredError(captured)) }
      case 'fault':
        // What was thrown may prove that nothing was sent; the ledger decides.
        return { thrown: thrown ?? answeredError(captured) }
    }
  }

  private stored(captured: Captured): StoredAnswer {
    const pointer = this.pointer === null ? this.context.pointer : this.pointer()
    return storedAnswer(captured, this.rules.keep, pointer)
  }

  private settled(ended: Ended): Awaitable<Answer | null> {
    try {
      const execution = this.granted.settle(ended)
      if (!(execution instanceof Promise)) return this.told(ended, execution)
      return execution.then((known) => this.told(ended, known)).catch((error: unknown) => this.undone(ended, error))
    } catch (error) {
      return this.undone(ended, error)
    }
  }

  /** A leased effect has happened, whatever became of its record. A transaction has not, if it did not commit. */
  private told(ended: Ended, execution: Execution<unknown>): Awaitable<Answer | null> {
    if (!this.rules.transactional || execution.kind === 'executed') return null
    if (execution.kind !== 'refused')
      return execution.kind === 'failed' && !execution.replayed ? null : this.rules.recorded(execution, this.asked)
    const { error } = execution
    const thrown = thrownIn(ended)
    // When it comes back, the ledger did what the handler's answer says.
    const ours = error === thrown || (error.code === 'not_done' && error.cause === thrown)
    return ours ? null : this.rules.undone(error, this.asked)
  }

  private undone(ended: Ended, error: unknown): Answer | null {
    return !this.rules.transactional || error === thrownIn(ended) ? null : this.rules.undone(error, this.asked)
  }
}

function thrownIn(ended: Ended): unknown {
  const word = 'value' in ended ? null : ended.thrown
  return isVerdict(word) ? word.error : word
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
 * What the handler named. A name that the store did not get in time is written with the response: what it names exists, and a
 * retry that found neither a body nor a name would be refused for as long as the record is kept.
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
