import type { BeginOptions } from '../../ledger/begin.ts'
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
  /** From here on known once it is read: how it is claimed. */
  declare way: Way<N, Tx>
  declare route: RouteDefinition<N>
  declare keyless: boolean
  declare read: Keyed
  declare operation: string
  declare parts: Parts
  /** How long the caller would wait for its answer; null where it has no preference. */
  declare waitMs: number | null
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
    this.breaker = null
  }

  /** It has a key, its own or that of its content. */
  keyed(way: Way<N, Tx>, read: Keyed, keyless: boolean): void {
    this.way = way
    this.route = way.definition
    this.read = read
    this.operation = read.operation
    this.keyless = keyless
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
