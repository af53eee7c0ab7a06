import type { AnyDefinition, ReplayRequest } from '../../ledger/definition.ts'
import { shareReplays } from '../../ledger/definition.ts'
import type { EffectContext, TransactionContext } from '../../ledger/effect-context.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Operation } from '../../ledger/operation.ts'
import { asStoredAnswer } from './record.ts'
import type { RouteDefinition } from './route.ts'

/** A route's operation, leased or transactional alike. */
export type RouteOperation<Tx> = Pick<Operation<unknown, EffectContext | TransactionContext<Tx>>, 'begin'>

let unnamed = 0

/** Answers are stored as values of the ledger; what may be kept of them the route has decided before. */
export function declareRoute<N, Tx>(ledger: Ledger<Tx>, route: RouteDefinition<N>): RouteOperation<Tx> {
  const { effect, retainMs, retainFrom, afterExpiry, refuseMs, whileRunning, perKeyLimit, authorize, shape, shapes } =
    route
  const definition = {
    // A route without a name serves many resources; each request brings its own operation then.
    name: route.name ?? `http.${++unnamed}`,
    effect,
    ...given({ retainMs, retainFrom, afterExpiry, refuseMs, whileRunning, perKeyLimit, shape, shapes }),
    // Clients are many and retry whatever they like: a stored response goes only to the request that it belongs to.
    unverified: 'refuse',
    [shareReplays]: (value: unknown) => asStoredAnswer(value) ?? value,
    ...(authorize === undefined
      ? {}
      : {
          authorize: ({ as, identity, pointer }: ReplayRequest<unknown>) => authorize(as as N, { identity, pointer }),
        }),
    ...(effect === 'transaction' ? {} : given(leasedOptions(route))),
  } as AnyDefinition
  remember(ledger, route)
  return ledger.operation(definition as never) as unknown as RouteOperation<Tx>
}

function leasedOptions<N>({ leaseMs, maxRunMs, unknownMs, onAbandoned, probe, classify }: RouteDefinition<N>) {
  return { leaseMs, maxRunMs, unknownMs, onAbandoned, probe, classify }
}

/** Options that were left out stay out: the ledger's defaults are its own. */
function given<T extends object>(options: T): Partial<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Partial<T>
}

/** Every route of a ledger, so that the status of an operation follows the rules of its own route. */
const routesOf = new WeakMap<object, RouteDefinition<never>[]>()

function remember<N>(ledger: object, route: RouteDefinition<N>): void {
  const routes = routesOf.get(ledger) ?? []
  routes.push(route as RouteDefinition<never>)
  routesOf.set(ledger, routes)
}

/** The routes that may have made a record: the one of that name, or any without a name for a method and a path. */
export function routesFor(ledger: object, operation: string): readonly RouteDefinition<never>[] {
  const routes = routesOf.get(ledger) ?? []
  const named = routes.filter(({ name }) => name === operation)
  if (named.length > 0) return named
  return /^(?:guard\.)?[A-Z]+ (\/|sha256:)/.test(operation) ? routes.filter(({ name }) => name === undefined) : []
}
