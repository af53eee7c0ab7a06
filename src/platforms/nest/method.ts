import { AsyncLocalStorage } from 'node:async_hooks'
import { answerEarly } from '../../http/protocol/early-node.ts'
import type { Answer } from '../../http/protocol/exchange.ts'
import type { Route } from '../../http/protocol/protect.ts'
import type { RouteDefinition } from '../../http/protocol/route.ts'
import type { Running } from '../../http/protocol/running.ts'
import { tapResponse } from '../../http/protocol/tap-node.ts'
import { isThenable } from '../../http/protocol/thenable.ts'
import { OnceError } from '../../ledger/core/errors.ts'
import { isVerdict } from '../../ledger/core/verdict.ts'
import type { NestExchange } from './exchange.ts'
import { exchangeOf, valueIn } from './exchange.ts'
import type { OnceonlyHost, StatusRules } from './host.ts'

/** Where the arguments of a method are that this entry needs, and how many it was declared with. */
export interface Seats {
  readonly request: number
  readonly response: number
  /** Of `@Once()`; null where the method does not ask for its context. */
  readonly context: number | null
  readonly declared: number
}

/** The running handler, for what it writes by itself; an interceptor or filter writes from elsewhere. */
const handlers = new AsyncLocalStorage<Running<unknown>>()

/** Responses whose method runs under a claim, or has: an interceptor such as `retry()` may call it once more. */
const claimed = new WeakSet<object>()

/** Guards, interceptors and pipes have run: claims the key, then runs the method, or answers in its place. */
export async function runProtected(
  host: OnceonlyHost,
  definition: RouteDefinition<object>,
  seats: Seats,
  given: readonly unknown[],
  what: string,
  method: (args: readonly unknown[]) => unknown,
): Promise<unknown> {
  const exchange = exchangeOf(given[seats.request], given[seats.response], host.maxBodyBytes, what)
  const route = host.routeOf(definition)
  const { incoming, request, response } = exchange
  if (claimed.has(response)) throw calledTwice(what)
  const call = (context: unknown) => method(argumentsFor(seats, given, context))
  const begun = await route.begin(incoming, request, incoming)
  switch (begun.kind) {
    case 'unprotected':
      return call(null)
    case 'answer':
      return answered(exchange, begun.answer)
    case 'run':
      claimed.add(response)
      if (response.writableEnded) return giveBack(begun, response.statusCode, what)
      return run(route, exchange, begun, () => call(begun.context), what)
  }
}

/** A second claim would wait for the first one, and its refusal would become the recorded response of both. */
function calledTwice(what: string): OnceError {
  const why = 'An interceptor called it again in one request, as `retry()` does.'
  return new OnceError('bad_option', `${what} runs once for a request. ${why} Repeat inside of the method.`)
}

/** A time limit in an interceptor has answered while the request waited for its key: nothing listens any more. */
async function giveBack(running: Running<unknown>, status: number, what: string): Promise<never> {
  const error = new Error(`${what} did not run: its request was answered with ${status} while it waited for its key.`)
  running.context.notDone()
  await running.fail(error)
  throw error
}

function argumentsFor({ context: seat, declared }: Seats, given: readonly unknown[], context: unknown): unknown[] {
  const args = given.slice(0, declared)
  if (seat !== null) args[seat] = context
  return args
}

/** Interceptors around the method see the value of what is sent, and whatever they make of it is not sent. */
function answered(exchange: NestExchange, answer: Answer): unknown {
  exchange.answer(answer)
  return valueIn(answer)
}

async function run(
  route: Route<object, unknown>,
  { response }: NestExchange,
  running: Running<unknown>,
  handler: () => unknown,
  what: string,
): Promise<unknown> {
  const { maxAnswerBytes: maxBytes, buffered } = route
  const state = { over: false }
  const tap = tapResponse(response, { maxBytes, buffered, running: watched(route, running, state, what) })
  answerEarly(response, running.early)
  try {
    return await running.inside(() => handlers.run(running, () => lastValue(handler())))
  } catch (error) {
    // What was thrown says more than the response that an exception filter makes of it.
    tap.threw(error)
    throw isVerdict(error) ? error.error : error
  } finally {
    state.over = true
  }
}

/**
 * A time limit in an interceptor answers while the method still runs. By its status alone such a response would give the
 * claim back, and a retry would run beside the first attempt.
 */
function watched(
  route: Route<object, unknown>,
  running: Running<unknown>,
  state: { readonly over: boolean },
  what: string,
): Running<unknown> {
  const { kind, context, early } = running
  return {
    kind,
    context,
    early,
    inside: (work) => running.inside(work),
    fail: (error) => running.fail(error),
    finish(captured, thrown) {
      if (state.over || handlers.getStore() === running) return running.finish(captured, thrown)
      const error = new Error(`${what} was still running when its request was answered with ${captured.status}.`)
      return running.fail(error).then(() => (captured.status < 400 && route.buffered ? route.fault(error) : null))
    },
  }
}

interface Subscribable {
  subscribe(observer: { next(value: unknown): void; error(error: unknown): void; complete(): void }): unknown
}

/** Of an observable, as Nest sends it. Here and not in Nest, which unsubscribes when the client hangs up. */
function lastValue(result: unknown): unknown {
  const { subscribe } = (result ?? {}) as Partial<Subscribable>
  if (typeof subscribe !== 'function' || isThenable(result)) return result
  return new Promise((resolve, reject) => {
    let last: unknown
    const next = (value: unknown) => void (last = value)
    ;(result as Subscribable).subscribe({ next, error: reject, complete: () => resolve(last) })
  })
}

/** `GET /operations/{id}`: answers in place of the method. */
export async function runStatus(
  host: OnceonlyHost,
  rules: StatusRules,
  { request, response }: Seats,
  given: readonly unknown[],
  what: string,
): Promise<unknown> {
  const exchange = exchangeOf(given[request], given[response], host.maxBodyBytes, what)
  const { incoming } = exchange
  return answered(exchange, await host.statusFor(rules).answer(incoming.target, exchange.request, incoming))
}
