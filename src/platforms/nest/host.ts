import { backgroundOver } from '../../http/protocol/early.ts'
import { MAX_BODY_BYTES } from '../../http/protocol/exchange.ts'
import type { HttpOptions, Route } from '../../http/protocol/protect.ts'
import { createRoute } from '../../http/protocol/protect.ts'
import { checkOptions } from '../../http/protocol/protect-options.ts'
import type { RouteDefinition } from '../../http/protocol/route.ts'
import type { OperationStatus, StatusOptions } from '../../http/protocol/status.ts'
import { createStatus } from '../../http/protocol/status.ts'

/** What the requests of Express and Fastify have in common, for a `who` that names no other type. */
export interface NestRequest {
  readonly method: string
  readonly url: string
  readonly ip?: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
}

export interface NestOptions<N, Tx> extends HttpOptions<N, Tx> {
  /** The largest body that is read where no parser has read it, in bytes. @default 1 MiB */
  readonly maxBodyBytes?: number
  /** Stops the ledger when the application has closed. @default true */
  readonly stopLedger?: boolean
}

/** What the status of operations asks beside the routes. */
export type StatusRules = Pick<StatusOptions<object, unknown>, 'authorize' | 'bound'>

/** The injected object that controllers find their routes through: one per application. */
export class OnceonlyHost {
  readonly maxBodyBytes: number
  readonly #options: NestOptions<object, unknown>
  readonly #routes = new Map<object, Route<object, unknown>>()
  readonly #statuses = new Map<object, OperationStatus<object>>()

  constructor(options: NestOptions<object, unknown>) {
    checkOptions(options, ['maxBodyBytes', 'stopLedger'], 'OnceonlyModule.forRoot')
    this.maxBodyBytes = options.maxBodyBytes ?? MAX_BODY_BYTES
    this.#options = options
  }

  /** The route of one decorator; controllers that inherit it share its operation. */
  routeOf(definition: RouteDefinition<object>): Route<object, unknown> {
    const known = this.#routes.get(definition)
    if (known !== undefined) return known
    const route = createRoute(this.#options, definition)
    this.#routes.set(definition, route)
    return route
  }

  /** The status of operations, by the rules of one decorator. */
  statusFor(rules: StatusRules): OperationStatus<object> {
    const known = this.#statuses.get(rules)
    if (known !== undefined) return known
    const { maxBodyBytes: _, stopLedger: __, ...options } = this.#options
    const status = createStatus<object, unknown>({ ...options, ...rules })
    this.#statuses.set(rules, status)
    return status
  }

  /** Called by Nest when the server takes no more requests. */
  async onApplicationShutdown(): Promise<void> {
    const { ledger, stopLedger = true } = this.#options
    await backgroundOver(ledger)
    if (stopLedger) await ledger.stop()
  }
}
