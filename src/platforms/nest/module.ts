import { checkOptions } from '../../ledger/core/option-names.ts'
import type { NestOptions, NestRequest } from './host.ts'
import { OnceonlyHost } from './host.ts'

/** A module as Nest's `imports` take it. */
export interface OnceonlyDynamicModule {
  readonly module: typeof OnceonlyModule
  readonly global: true
  // oxlint-disable-next-line typescript/no-explicit-any -- Nest's own type for modules.
  readonly imports: any[]
  // oxlint-disable-next-line typescript/no-explicit-any -- Nest's own type for providers.
  readonly providers: any[]
  readonly exports: (typeof OnceonlyHost)[]
}

// oxlint-disable-next-line typescript/no-explicit-any -- what is injected has the types that the factory says.
export interface NestAsyncOptions<N, Tx, Injected extends any[] = any[]> {
  /** Modules that export what `inject` names. @default none */
  // oxlint-disable-next-line typescript/no-explicit-any -- Nest's own type for modules.
  readonly imports?: any[]
  /** The providers that `useFactory` gets, in this order. @default none */
  // oxlint-disable-next-line typescript/no-explicit-any -- Nest's own type for tokens.
  readonly inject?: any[]
  /** Makes the options of `forRoot` from other providers. */
  readonly useFactory: (...injected: Injected) => NestOptions<N, Tx> | Promise<NestOptions<N, Tx>>
}

const asyncOptions = { imports: true, inject: true, useFactory: true } as const

/**
 * Gives the methods with `@Idempotent` their ledger. Import it once, in the root module.
 *
 * @example
 * ```ts
 * import { Module } from '@nestjs/common'
 * import { createLedger } from 'onceonly'
 * import { OnceonlyModule } from 'onceonly/nest'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const once = createLedger({ store: sqliteStore('orders.db') })
 *
 * @Module({
 *   imports: [
 *     OnceonlyModule.forRoot({
 *       ledger: once,
 *       who: (request) => ({ tenant: 'acme', caller: request.headers['from']?.toString() ?? 'anonymous' }),
 *     }),
 *   ],
 * })
 * export class AppModule {}
 * ```
 */
// oxlint-disable-next-line typescript/no-extraneous-class -- Nest knows modules as classes.
export class OnceonlyModule {
  /** With a ledger that exists already. */
  static forRoot<Tx, N = NestRequest>(options: NestOptions<N, Tx>): OnceonlyDynamicModule {
    const host = new OnceonlyHost(options as unknown as NestOptions<object, unknown>)
    return moduleOf([], { provide: OnceonlyHost, useValue: host })
  }

  /** With a ledger that is made of other providers, such as a pool or a data source. */
  // oxlint-disable-next-line typescript/no-explicit-any -- what is injected has the types that the factory says.
  static forRootAsync<Tx, Injected extends any[], N = NestRequest>(
    options: NestAsyncOptions<N, Tx, Injected>,
  ): OnceonlyDynamicModule {
    checkOptions('OnceonlyModule.forRootAsync', options, asyncOptions)
    const { imports = [], inject = [], useFactory } = options
    const make = async (...injected: Injected) =>
      new OnceonlyHost((await useFactory(...injected)) as unknown as NestOptions<object, unknown>)
    return moduleOf(imports, { provide: OnceonlyHost, useFactory: make, inject })
  }
}

function moduleOf(imports: unknown[], provider: object): OnceonlyDynamicModule {
  return { module: OnceonlyModule, global: true, imports, providers: [provider], exports: [OnceonlyHost] }
}
