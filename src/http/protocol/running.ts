import type { BeginOptions } from '../../ledger/begin.ts'
import { isOnceError } from '../../ledger/core/errors.ts'
import type { IdentityParts } from '../../ledger/core/identity.ts'
import type { Pointer } from '../../ledger/core/record.ts'
import { final, isVerdict, released } from '../../ledger/core/verdict.ts'
import type { EffectContext, TransactionContext } from '../../ledger/effect-context.ts'
import type { Ended, Granted } from '../../ledger/granted.ts'
import type { Breaker } from '../../ledger/guard/breaker.ts'
import type { Execution } from '../../ledger/present.ts'
import type { Leaving } from '../../ledger/twins.ts'
import type { Awaitable } from '../../runtime/runtime.ts'
import type { RouteOperation } from './declare.ts'
import type { Early } from './early.ts'
import type { Answer, Captured, Incoming } from './exchange.ts'
import type { KeyedRequest as Keyed } from './read.ts'
import type { Finality, KeepRules } from './record.ts'
import { meaningOf, storedAnswer } from './record.ts'
import type { AskedAt } from './replay.ts'
import type { RouteDefinition, Who } from './route.ts'

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

/** How a request is claimed: under the key that its caller sent, or under its content. */
export interface Way<N, Tx> {
  readonly definition: RouteDefinition<N>
  readonly operation: RouteOperation<Tx>
  /** In front of the operation's name, so that keys and contents never meet. */
  readonly prefix: string
  readonly who: (request: N) => Who | Promise<Who>
  /** For all callers of a tenant. */
  readonly shared: boolean
  readonly decideMs?: number | undefined
  /** Where the store must decide in time, one that does not is spared, and its callers with it. */
  readonly breaker: Breaker | null
}

export type Parts = IdentityParts & { readonly operation: string }

/**
 * One request on its way, from the adapter to its answer. A class, and not a literal: V8 would keep the requests of a
 * literal until the next full collection. Its fields are declared only, because an initializer would write each of them twice.
 */
export class RouteRequest<N, Tx> implements AskedAt<N> {
  declare readonly incoming: Incoming
  declare readonly request: N
  declare readonly method: string
  declare readonly target: string
  declare readonly signal: AbortSignal | Leaving | undefined
  /** By its key, until it is known to have none. */
  declare way: Way<N, Tx>
  declare route: RouteDefinition<N>
  declare keyless: boolean
  /** From here on known once it is read. */
  declare read: Keyed
  declare operation: string
  declare parts: Parts
  /** How long the caller would wait for its answer; null where it has no preference. */
  declare waitMs: number | null
  /** The region that is the home of the key now, and asks for it; null in all other cases. */
  declare handsOverTo: string | null
  /** Learns whether the store decided; null where it was not asked, or need not be in time. */
  declare breaker: Breaker | null

  constructor(incoming: Incoming, request: N, signal: AbortSignal | Leaving | undefined, way: Way<N, Tx>) {
    this.incoming = incoming
    this.request = request
    this.method = incoming.method
    this.target = incoming.target
    this.signal = signal
    this.way = way
    this.route = way.definition
    this.keyless = false
    this.read = UNREAD
    this.operation = ''
    this.parts = NO_PARTS
    this.waitMs = null
    this.handsOverTo = null
    this.breaker = null
  }
}

/** The options of the ledger for a request. A class, because it has the request as well. */
export class RequestOptions implements BeginOptions {
  declare readonly as: unknown
  declare readonly fingerprints: Keyed['fingerprints']
  declare readonly signal: AbortSignal | Leaving | undefined
  declare readonly decideMs: number | undefined

  constructor(
    { request, read, signal }: Pick<RouteRequest<unknown, never>, 'request' | 'read' | 'signal'>,
    decideMs: number | undefined,
  ) {
    this.as = request
    this.fingerprints = read.fingerprints
    this.signal = signal
    this.decideMs = decideMs
  }
}

const UNREAD: Keyed = { kind: 'keyed', key: '', operation: '', fingerprints: [''], bytes: null }
const NO_PARTS: Parts = { tenant: '', caller: '', operation: '', key: '' }

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
    if (this.over !== undefined) return this.over
    if (this.marked) return this.end({ thrown: released(answeredError(captured)) })
    // A verdict that was thrown says more than the status that a framework made of it.
    const verdict = thrown !== undefined && isVerdict(thrown) ? thrown.verdict : null
    if (verdict !== null && verdict !== 'final') return this.end({ thrown })
    const { finality, keep } = this.rules
    const pointer = this.pointer === null ? this.context.pointer : this.pointer()
    const meaning = verdict === 'final' ? 'refused' : meaningOf(captured, finality)
    switch (meaning) {
      case 'succeeded': {
        const value = storedAnswer(captured, keep, pointer)
        // Text is plain JSON already.
        return this.end({ value, encoded: value.text === undefined ? undefined : JSON.stringify(value) })
      }
      case 'refused': {
        const answer = storedAnswer(captured, keep, pointer)
        return this.end({ thrown: final(answeredError(captured), { answer }) })
      }
      case 'released':
        return this.end({ thrown: released(answeredError(captured)) })
      case 'fault':
        // What was thrown may prove that nothing was sent; the ledger decides.
        return this.end({ thrown: thrown ?? answeredError(captured) })
    }
  }

  async fail(error: unknown): Promise<void> {
    await (this.over === undefined ? this.end({ thrown: this.marked ? released(error) : error }) : this.over)
  }

  private end(ended: Ended): Awaitable<Answer | null> {
    const { transactional } = this.rules
    try {
      const execution = this.granted.settle(ended)
      // A leased effect has happened, whatever became of its record.
      if (!transactional) this.over = execution instanceof Promise ? execution.then(itsOwn, itsOwn) : null
      else if (execution instanceof Promise)
        this.over = execution
          .then((known) => this.replacement(ended, known))
          .catch((error: unknown) => this.undone(ended, error))
      else this.over = this.replacement(ended, execution)
    } catch (error) {
      this.over = transactional ? this.undone(ended, error) : null
    }
    this.recorded?.resolve(this.over)
    return this.over
  }

  /** What is sent in place of the handler's response: a transaction that did not commit has not happened. */
  private replacement(ended: Ended, execution: Execution<unknown>): Awaitable<Answer | null> {
    if (execution.kind === 'executed') return null
    if (execution.kind !== 'refused')
      return execution.kind === 'failed' && !execution.replayed ? null : this.rules.recorded(execution, this.asked)
    const { error } = execution
    const thrown = thrownIn(ended)
    // When it comes back, the ledger did what the handler's answer says.
    const ours = error === thrown || (error.code === 'not_done' && error.cause === thrown)
    return ours ? null : this.rules.undone(error, this.asked)
  }

  private undone(ended: Ended, error: unknown): Answer | null {
    return error === thrownIn(ended) ? null : this.rules.undone(error, this.asked)
  }
}

/** What the handler answered may leave. */
const itsOwn = () => null

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
  let unsaved: Pointer | null = null
  Object.assign(context, {
    async attach(pointer: Pointer) {
      try {
        await attach(pointer)
        unsaved = null
      } catch (error) {
        if (!isOnceError(error, 'bad_input')) unsaved = pointer
        throw error
      }
    },
  })
  return () => unsaved ?? context.pointer
}
