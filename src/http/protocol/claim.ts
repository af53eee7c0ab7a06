import type { IdentityParts } from '../../ledger/core/identity.ts'
import type { Breaker } from '../../ledger/guard/breaker.ts'
import type { Leaving } from '../../ledger/twins.ts'
import type { RouteOperation } from './declare.ts'
import type { Incoming } from './exchange.ts'
import type { KeyedRequest as Keyed } from './readings.ts'
import type { AskedAt } from './replay.ts'
import type { RouteDefinition, Who } from './route.ts'

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

/** One request, as an adapter gave it. */
export class Call<N> {
  readonly incoming: Incoming
  readonly request: N
  readonly signal: AbortSignal | Leaving | undefined

  constructor(incoming: Incoming, request: N, signal: AbortSignal | Leaving | undefined) {
    this.incoming = incoming
    this.request = request
    this.signal = signal
  }
}

export type Parts = IdentityParts & { readonly operation: string }

/** One request at its claim. A class for the reason of commands. */
export class Claim<N, Tx> {
  readonly way: Way<N, Tx>
  readonly read: Keyed
  readonly call: Call<N>
  readonly parts: Parts
  /** How long the caller would wait for its answer; null where it has no preference. */
  readonly waitMs: number | null
  /** Learns whether the store decided; null where it was not asked, or need not be in time. */
  readonly breaker: Breaker | null
  readonly asked: AskedAt<N>

  constructor(
    way: Way<N, Tx>,
    read: Keyed,
    call: Call<N>,
    parts: Parts,
    waitMs: number | null,
    breaker: Breaker | null,
    asked: AskedAt<N>,
  ) {
    this.way = way
    this.read = read
    this.call = call
    this.parts = parts
    this.waitMs = waitMs
    this.breaker = breaker
    this.asked = asked
  }
}

/** A class, and not a literal, for the reason of commands: V8 would keep its requests until the next full collection. */
export class Question<N> implements AskedAt<N> {
  readonly route: RouteDefinition<N>
  readonly operation: string
  readonly method: string
  readonly target: string
  readonly request: N
  readonly keyless: boolean

  constructor(route: RouteDefinition<N>, operation: string, incoming: Incoming, request: N, keyless: boolean) {
    this.route = route
    this.operation = operation
    this.method = incoming.method
    this.target = incoming.target
    this.request = request
    this.keyless = keyless
  }
}
