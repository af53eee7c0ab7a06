import { randomBytes } from 'node:crypto'
import { createConsole } from '../console/console.ts'
import type { Totalling } from '../console/live.ts'
import { type ConsoleServer, createConsoleServer } from '../console/serve.ts'
import type { ServedRoute } from '../http/describe.ts'
import type { Operate } from '../operate/operate.ts'
import type { ConsoleConfig, GatewayConfig } from './config.ts'
import type { Rule } from './rule.ts'
import type { GatewayEvent } from './watch.ts'

/** What the console of a gateway asks and shows. */
export interface GatewayConsole {
  readonly operate: Operate
  readonly meter: Totalling
}

export interface OpenConsole {
  readonly server: ConsoleServer
  readonly config: ConsoleConfig
  /** Made here, because nobody chose one; null where somebody did. */
  readonly token: string | null
}

const LOCAL_ONLY =
  'The gateway has neither `operatorToken` nor `viewerToken`, so its console answers this machine only.'
const TOKEN_BYTES = 24

interface Parts extends GatewayConsole {
  readonly config: ConsoleConfig
  readonly routes: GatewayConfig['routes']
  readonly rules: readonly Rule[]
  readonly on: ((event: GatewayEvent) => void) | undefined
  readonly onError: (error: unknown) => void
}

/** On a port of its own: every path of the gateway's port may be one of the service behind it. */
export function openConsole({ config, operate, meter, routes = [], rules, on, onError }: Parts): OpenConsole {
  const { operatorToken: operator = null, viewerToken: viewer = null } = config
  const chosen = operator !== null || viewer !== null
  const token = chosen ? null : randomBytes(TOKEN_BYTES).toString('base64url')
  const console = createConsole({
    // Messages, sagas, runs and streams are not the gateway's, whoever else keeps theirs in the same store.
    operate: { ...operate, events: null, sagas: null, runs: null, streams: null },
    meter,
    tokens: { operator: operator ?? token, viewer, chosen },
    localOnly: LOCAL_ONLY,
    guards: routes.flatMap(({ key, operation }) =>
      key === 'guarded' && operation !== undefined ? [`guard.${operation}`] : [],
    ),
    routes: () => rules.flatMap(servedBy),
    onAction: ({ action, by }) => on?.({ kind: 'operator', action, by }),
    onError,
  })
  return { server: createConsoleServer({ console, onError }), config, token }
}

function servedBy({ methods, path, route: { definition } }: Rule): readonly ServedRoute[] {
  return [...methods].map((method) => ({ kind: 'command', method, path: path.replace(/:(\w+)/g, '{$1}'), definition }))
}
