import { isOnceError } from '../../ledger/core/errors.ts'
import type { Pointer } from '../../ledger/core/record.ts'
import { final, isVerdict, released } from '../../ledger/core/verdict.ts'
import type { EffectContext, TransactionContext } from '../../ledger/effect-context.ts'
import type { Ended, Granted } from '../../ledger/granted.ts'
import type { Execution } from '../../ledger/present.ts'
import type { Early } from './early.ts'
import type { Answer, Captured } from './exchange.ts'
import type { Finality } from './finality.ts'
import { meaningOf } from './finality.ts'
import type { KeepRules } from './record.ts'
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

export interface RunRules {
  readonly finality: Finality
  readonly keep: KeepRules
  readonly transactional: boolean
  /** What is answered when a transaction did not commit. */
  undone(error: unknown): Answer
  /** What is answered when another attempt's outcome stands in the record, because this one did not commit. */
  recorded(execution: Execution<unknown>): Promise<Answer>
}

/** A granted claim as a route uses it; the guard's lock has the same shape. */
export type GrantedRoute<Tx> = Pick<Granted<EffectContext | TransactionContext<Tx>>, 'context' | 'inside' | 'settle'>

/** @param earlyOf makes the early answer, given when the outcome is recorded */
export function createRunning<Tx>(
  { context, inside, settle }: GrantedRoute<Tx>,
  rules: RunRules,
  earlyOf: ((over: Promise<unknown>) => Early) | null = null,
): Running<Tx> {
  const pointer = rules.keep.keep === 'pointer' ? namedBy(context) : null
  /** Given to the early answer, which comes before the outcome; most routes have none. */
  const recorded = earlyOf === null ? null : Promise.withResolvers<Answer | null>()
  let over: Promise<Answer | null> | null = null
  let marked = false

  function endedOf(captured: Captured, thrown: unknown): Ended {
    if (marked) return { thrown: released(answeredError(captured)) }
    // A verdict that was thrown says more than the status that a framework made of it.
    if (isVerdict(thrown) && thrown.verdict !== 'final') return { thrown }
    const meaning = isVerdict(thrown) ? 'refused' : meaningOf(captured, rules.finality)
    switch (meaning) {
      case 'succeeded':
        return { value: storedAnswer(captured, rules.keep, pointer === null ? context.pointer : pointer()) }
      case 'refused': {
        const answer = storedAnswer(captured, rules.keep, pointer === null ? context.pointer : pointer())
        return { thrown: final(answeredError(captured), { answer }) }
      }
      case 'released':
        return { thrown: released(answeredError(captured)) }
      case 'fault':
        // What was thrown may prove that nothing was sent; the ledger decides.
        return { thrown: thrown ?? answeredError(captured) }
    }
  }

  /** A leased effect has happened, whatever became of its record. A transaction has not, if it did not commit. */
  async function settled(ended: Ended): Promise<Answer | null> {
    const word = 'value' in ended ? null : ended.thrown
    const thrown = isVerdict(word) ? word.error : word
    try {
      const execution = await settle(ended)
      if (!rules.transactional || execution.kind === 'executed') return null
      if (execution.kind !== 'refused')
        return execution.kind === 'failed' && !execution.replayed ? null : await rules.recorded(execution)
      const { error } = execution
      // When it comes back, the ledger did what the handler's answer says.
      const ours = error === thrown || (error.code === 'not_done' && error.cause === thrown)
      return ours ? null : rules.undone(error)
    } catch (error) {
      return !rules.transactional || error === thrown ? null : rules.undone(error)
    }
  }

  return {
    kind: 'run',
    context: Object.assign(context, { notDone: () => void (marked = true) }),
    early: earlyOf === null || recorded === null ? null : earlyOf(recorded.promise),
    inside,
    finish(captured, thrown) {
      over ??= settled(endedOf(captured, thrown))
      recorded?.resolve(over)
      return over
    },
    async fail(error) {
      over ??= settled({ thrown: marked ? released(error) : error })
      recorded?.resolve(over)
      await over
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
