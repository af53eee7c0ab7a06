import type { ServedRoute } from '../protocol/describe.ts'
import type { Bound } from '../protocol/listen.ts'
import type { ConsoleConfig } from './config.ts'

/** What a gateway knows that its console shows. */
export interface ConsoleParts {
  readonly config: ConsoleConfig
  /** The operations whose keys are contents. */
  readonly guards: readonly string[]
  readonly routes: () => readonly ServedRoute[]
  readonly onAction: (action: { readonly action: string; readonly by: string }) => void
  readonly onError: (error: unknown) => void
}

/** A console on a port of its own: every path of the gateway's port may be one of the service behind it. */
export interface OpenConsole {
  /** Made at the start because the configuration names none; null where it names one. */
  readonly token: string | null
  listen(): Promise<Bound>
  stop(): Promise<void>
}

/** Opens the console of a gateway; `gatewayConsole` of `onceonly/console` is one. */
export type GatewayConsole = (parts: ConsoleParts) => OpenConsole
