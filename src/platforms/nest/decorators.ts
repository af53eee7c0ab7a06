import type { DefinitionOf, EffectKind, KeyRule } from '../../http/protocol/context.ts'
import { refuseUnknown } from '../../http/protocol/options.ts'
import type { RouteDefinition } from '../../http/protocol/route.ts'
import { checkRoute } from '../../http/protocol/route.ts'
import type { StatusOptions } from '../../http/protocol/status.ts'
import { OnceError } from '../../ledger/core/errors.ts'
import type { NestRequest, StatusRules } from './host.ts'
import { OnceonlyHost } from './host.ts'
import type { Place } from './metadata.ts'
import {
  argumentAt,
  argumentCount,
  copyMetadata,
  injectProperty,
  REQUEST_ARGUMENT,
  RESPONSE_ARGUMENT,
} from './metadata.ts'
import type { Seats } from './method.ts'
import { runProtected, runStatus } from './method.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- a decorator fits methods of every type.
type AnyMethod = (...args: any[]) => unknown

/** What `@Once()` gives. */
interface AnyContext {
  readonly effectKey: string
  readonly signal: AbortSignal
}

type IsAny<X> = 0 extends 1 & X ? true : false

/** A context parameter that asks for more than the route gives: `tx` without a transaction, or no null without a key. */
type Misfit<X, E extends EffectKind, K extends KeyRule> =
  IsAny<X> extends true
    ? never
    : [NonNullable<X>] extends [AnyContext]
      ? NonNullable<X> extends { readonly tx: unknown }
        ? E extends 'transaction'
          ? WithoutNull<X, K>
          : 'only a transaction has tx'
        : WithoutNull<X, K>
      : never

type WithoutNull<X, K extends KeyRule> = K extends 'optional'
  ? null extends X
    ? never
    : 'without a key the context is null'
  : never

type Misfits<P extends readonly unknown[], E extends EffectKind, K extends KeyRule> = {
  [I in keyof P]: Misfit<P[I], E, K>
}[number]

type Fitting<M extends AnyMethod, E extends EffectKind, K extends KeyRule> = [Misfits<Parameters<M>, E, K>] extends [
  never,
]
  ? unknown
  : { readonly 'the parameter of @Once() does not fit': Misfits<Parameters<M>, E, K> }

/** Decorates a method whose parameters fit the effect. */
export type IdempotentDecorator<E extends EffectKind, K extends KeyRule> = <M extends AnyMethod>(
  target: object,
  member: string | symbol,
  descriptor: TypedPropertyDescriptor<M> & Fitting<M, E, K>,
) => void

/** On the prototype of a controller: the injected host, which each instance keeps under the same name. */
const hostKey = Symbol('onceonly')

interface Hosted {
  readonly [hostKey]?: OnceonlyHost
}

/** What the decorators said of the methods of one class. */
interface Member {
  context: number | null
  definition: RouteDefinition<object> | null
}

const classes = new WeakMap<object, Map<string | symbol, Member>>()

function memberOf(prototype: object, name: string | symbol): Member {
  const members = classes.get(prototype) ?? new Map<string | symbol, Member>()
  classes.set(prototype, members)
  const known = members.get(name) ?? { context: null, definition: null }
  members.set(name, known)
  return known
}

/** Lets Nest inject the host, and examines the class when it does: what is wrong is said before the first request. */
function hosted(prototype: object): void {
  if (Object.hasOwn(prototype, hostKey)) return
  Object.defineProperty(prototype, hostKey, {
    configurable: true,
    get: () => undefined,
    set(this: object, host: OnceonlyHost) {
      for (const [name, member] of classes.get(prototype) ?? []) examine(host, nameOf(prototype, name), member)
      Object.defineProperty(this, hostKey, { value: host, configurable: true })
    },
  })
  injectProperty(prototype.constructor, hostKey, OnceonlyHost)
}

function examine(host: OnceonlyHost, what: string, { context, definition }: Member): void {
  if (definition !== null) host.routeOf(definition)
  else if (context !== null) {
    throw new OnceError('bad_option', `${what} has a parameter with @Once(), but no @Idempotent({ name, effect }).`)
  }
}

function nameOf(prototype: object, member: string | symbol): string {
  return `${prototype.constructor.name}.${String(member)}`
}

/**
 * Makes a route of a controller safe to retry. The key is claimed after guards, interceptors and pipes, so that a request
 * that they refuse claims nothing.
 *
 * @example
 * ```ts
 * import { Body, Controller, Post } from '@nestjs/common'
 * import { Idempotent, Once } from 'onceonly/nest'
 * import type { TransactionRouteContext } from 'onceonly/nest'
 * import type { SqlTx } from 'onceonly'
 *
 * @Controller('orders')
 * export class OrdersController {
 *   @Post()
 *   @Idempotent({ name: 'order.place', effect: 'transaction' })
 *   async place(@Body() body: { item: string }, @Once() { tx }: TransactionRouteContext<SqlTx>) {
 *     await tx.query('insert into orders (item) values (?)', [body.item])
 *     return { item: body.item }
 *   }
 * }
 * ```
 */
export function Idempotent<E extends EffectKind, K extends KeyRule = 'required'>(
  // oxlint-disable-next-line typescript/no-explicit-any -- `authorize` and others name the request of their platform.
  definition: DefinitionOf<any, E, K>,
): IdempotentDecorator<E, K> {
  checkRoute(definition)
  return (target, name, descriptor) => {
    const member = memberOf(target, name)
    member.definition = definition
    hosted(target)
    replace(target, name, descriptor as PropertyDescriptor, member, (host, seats, given, what, method) =>
      runProtected(host, definition, seats, given, what, method),
    )
  }
}

/**
 * The context of the effect, as a parameter of a method with `@Idempotent`: `TransactionRouteContext` with
 * `effect: 'transaction'`, `LeasedRouteContext` otherwise; or null for a request without a key, where the key is optional.
 */
export function Once(): ParameterDecorator {
  return (target, name, index) => {
    if (name === undefined) throw new OnceError('bad_option', '@Once() is for parameters of methods, not constructors.')
    memberOf(target, name).context = index
    hosted(target)
  }
}

/**
 * Answers `GET /operations/{id}` in place of a method without a body: what became of a request, for its caller.
 *
 * @example
 * ```ts
 * import { Controller, Get } from '@nestjs/common'
 * import { ShowOperation } from 'onceonly/nest'
 *
 * @Controller('operations')
 * export class OperationsController {
 *   @Get(':id')
 *   @ShowOperation()
 *   show(): void {}
 * }
 * ```
 */
export function ShowOperation<N = NestRequest>(options: ShowOperationOptions<N> = {}): MethodDecorator {
  refuseUnknown('ShowOperation', options, ['authorize', 'bound'])
  return (target, name, descriptor) => {
    hosted(target)
    const run: Run = (host, seats, given, what) => runStatus(host, options as StatusRules, seats, given, what)
    replace(target, name, descriptor as PropertyDescriptor, memberOf(target, name), run)
  }
}

/** What `@ShowOperation` asks beside the routes' own rules. */
export type ShowOperationOptions<N> = Pick<StatusOptions<N, unknown>, 'authorize' | 'bound'>

type Run = (
  host: OnceonlyHost,
  seats: Seats,
  given: readonly unknown[],
  what: string,
  method: (args: readonly unknown[]) => unknown,
) => Promise<unknown>

function replace(
  target: object,
  name: string | symbol,
  descriptor: PropertyDescriptor,
  { context, definition }: Member,
  run: Run,
): void {
  const original = descriptor.value as AnyMethod
  const what = nameOf(target, name)
  if (typeof original !== 'function') throw new OnceError('bad_option', `${what} is no method, and cannot be a route.`)
  const seats = seatsOf({ type: target.constructor, member: name }, context)
  function method(this: Hosted, ...given: unknown[]): unknown {
    const host = this[hostKey]
    // A test of the application calls the method of an instance that it made by itself.
    if (host === undefined) return original.apply(this, given)
    return run(host, seats, given, what, (args) => original.apply(this, [...args]))
  }
  copyMetadata(original, method)
  Object.defineProperty(method, 'name', { value: original.name, configurable: true })
  descriptor.value = Object.assign(method, definition === null ? {} : { definition })
}

/** The request and the response come as two more arguments, unless the method asks for them anyway. */
function seatsOf(place: Place, context: number | null): Seats {
  const declared = Math.max(argumentCount(place), (context ?? -1) + 1)
  const request = argumentAt(place, REQUEST_ARGUMENT, declared)
  const response = argumentAt(place, RESPONSE_ARGUMENT, Math.max(declared, request + 1))
  return { request, response, context, declared }
}
