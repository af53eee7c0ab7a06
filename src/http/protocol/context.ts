import type { EffectKind } from '../../ledger/definition.ts'
import type { RouteDefinition } from './route.ts'
import type { LeasedRouteContext, TransactionRouteContext } from './running.ts'

export type { EffectKind }

/** What a route says about requests without a key. */
export type KeyRule = NonNullable<RouteDefinition<never>['key']>

type ContextFor<Tx, E extends EffectKind> = E extends 'transaction' ? TransactionRouteContext<Tx> : LeasedRouteContext

/** The last argument of a handler: with `tx` exactly for a transaction, and null only without a key. */
export type HandlerContext<Tx, E extends EffectKind, K extends KeyRule> =
  | ContextFor<Tx, E>
  | (K extends 'required' ? never : null)

/** A definition whose effect and key rule decide the type of the handler's context. */
// oxlint-disable-next-line typescript/no-explicit-any -- where the framework does not know the type of a body.
export type DefinitionOf<N, E extends EffectKind, K extends KeyRule, B = any> = RouteDefinition<N, B> & {
  readonly effect: E
  readonly key?: K
}
