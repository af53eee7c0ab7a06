import { randomBytes } from 'node:crypto'
import type { GatewayConsole } from '../../http/gateway/console.ts'
import type { Admin } from '../core/admin.ts'
import type { FiguresShape } from '../telemetry/event-shapes.ts'
import { createConsole } from './console.ts'
import { createConsoleServer } from './serve.ts'
import type { Totalling } from './totals.ts'

const LOCAL_ONLY =
  'The gateway has neither `operatorToken` nor `viewerToken`, so its console answers this machine only.'
const TOKEN_BYTES = 24

export interface GatewayConsoleOptions {
  /** What it reads and acts on. */
  readonly admin: Admin
  /** Where the live rates come from: `createPrometheusMeter`. */
  readonly meter: Totalling
  /** `figures` of telemetry. @default none */
  readonly figures?: () => FiguresShape
}

/** The console that `createGateway` opens where its configuration has one. */
export function gatewayConsole({ admin, meter, figures }: GatewayConsoleOptions): GatewayConsole {
  return ({ config, guards, routes, onAction, onError }) => {
    const { operatorToken: operator = null, viewerToken: viewer = null } = config
    const chosen = operator !== null || viewer !== null
    const token = chosen ? null : randomBytes(TOKEN_BYTES).toString('base64url')
    const console = createConsole({
      // Messages, sagas, runs and streams of other applications on the same store are not shown.
      admin: { ...admin, events: null, sagas: null, runs: null, streams: null },
      meter,
      ...(figures === undefined ? {} : { figures }),
      tokens: { operator: operator ?? token, viewer, chosen },
      localOnly: LOCAL_ONLY,
      guards,
      routes,
      onAction,
      onError,
    })
    const server = createConsoleServer({ console, onError })
    return { token, listen: () => server.listen(config.port, config.host), stop: () => server.stop() }
  }
}
