import { once } from 'node:events'
import { extname } from 'node:path'
import type { GatewayConfig, RouteRule } from '../../http/gateway/config.ts'
import { createGateway, type Listening } from '../../http/gateway/gateway.ts'
import { gatewayLabels } from '../../http/gateway/labels.ts'
import type { GatewayEvent } from '../../http/gateway/watch.ts'
import { limits } from '../../ledger/core/limits.ts'
import { createLedger } from '../../ledger/ledger.ts'
import { gatewayConsole } from '../console/gateway.ts'
import { createAdmin } from '../core/admin.ts'
import { createStanding } from '../core/standing.ts'
import { observeProcess } from '../telemetry/process.ts'
import { createPrometheusMeter } from '../telemetry/prometheus.ts'
import { createTelemetry } from '../telemetry/telemetry.ts'
import { findConfig, loadConfig } from './config.ts'
import { countTo, createLines, ledgerText, lineOf } from './gateway-watch.ts'
import type { GatewayValues } from './program-arguments.ts'
import { whyUnreachable } from './reachable.ts'
import { openStore } from './store.ts'
import { Usage } from './usage.ts'

const NAMES = ['onceonly.config.ts', 'onceonly.config.js', 'onceonly.config.mjs', 'onceonly.config.json']

/** Without rules every request with a key is protected. */
const DEFAULT_ROUTES: readonly RouteRule[] = [
  {
    method: ['POST', 'PUT', 'PATCH', 'DELETE'],
    path: '/*',
  },
]

export async function gatewayProgram(values: GatewayValues): Promise<number> {
  const { host, port } = addressOf('listen', values.listen)
  const read = await readConfig(values.config)
  const config: GatewayConfig = {
    routes: DEFAULT_ROUTES,
    ...read,
    ...(values.upstream === undefined ? {} : { upstream: values.upstream }),
    ...(values.console === undefined ? {} : { console: { ...read.console, ...addressOf('console', values.console) } }),
  }
  const label = gatewayLabels(config)
  const opened = await openStore(values.store)
  const { store } = opened
  const meter = createPrometheusMeter()
  observeProcess(meter)
  const telemetry = createTelemetry({ meter, standing: createStanding(store), label })
  const lines = createLines((text) => process.stdout.write(text))
  const ledger = createLedger({
    store,
    on: (event) => {
      telemetry.ledger(event)
      const line = ledgerText(event)
      if (line !== null) lines.add(line)
    },
    around: telemetry.around,
  })
  const admin = createAdmin({ store, ledger })
  const count = countTo(telemetry)
  const on = (event: GatewayEvent) => {
    count(event)
    if (!values.quiet || event.kind !== 'access') lines.add(lineOf(event))
  }
  try {
    const ready = () => store.clock.now({ timeoutMs: limits.storeCallMs })
    const gateway = createGateway({
      config,
      ledger,
      ready,
      on,
      metrics: meter,
      console: gatewayConsole({ admin, meter, figures: telemetry.figures }),
    })
    telemetry.observeLoad(() => gateway.load)
    // Before anything is accepted, so that a store that cannot be opened ends the command and not the first request.
    await ready()
    const bound = await gateway.listen(port, host).catch((cause: Error) => {
      throw new Usage(`Cannot listen on ${host}:${port}: ${cause.message}.`, { cause })
    })
    console.log(`onceonly gateway listens on http://${bound.host}:${bound.port}, store ${store.name}`)
    if (bound.console !== null) console.log(consoleLine(bound.console))
    for (const address of upstreamsOf(config)) void reportUnreachable(address)
    await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')])
    console.log('onceonly gateway ends when all requests are answered')
    await gateway.stop()
    lines.flush()
    return 0
  } finally {
    await ledger.stop()
    await opened.stop()
  }
}

function upstreamsOf({ upstream, upstreams = {} }: GatewayConfig): readonly string[] {
  return [...(upstream === undefined ? [] : [upstream]), ...Object.values(upstreams)]
}

/** It may start later than its gateway: a typing mistake is seen at once all the same. */
async function reportUnreachable(address: string): Promise<void> {
  const why = await whyUnreachable(address)
  if (why === null) return
  const until = 'Its requests are answered with 503 until it can be reached.'
  console.log(`The upstream ${new URL(address).origin} cannot be reached: ${why}. ${until}`)
}

/** A generated token is only valid on this machine, and ends with the process. */
function consoleLine({ host, port, token }: NonNullable<Listening['console']>): string {
  const place = `Its console is http://${host.includes(':') ? `[${host}]` : host}:${port}/console`
  return token === null ? `${place}, sign in with a token` : `${place}, for this machine only, with the token ${token}`
}

const HIGHEST_PORT = 65_535

function addressOf(option: string, text: string): { readonly host: string; readonly port: number } {
  const [, host = '127.0.0.1', digits = ''] = /^(?:(.+):)?(\d+)$/.exec(text) ?? []
  const port = Number(digits)
  if (digits === '' || port > HIGHEST_PORT)
    throw new Usage(`--${option} ${text} is no port, like 8080 or 0.0.0.0:8080.`)
  return { host: host.replace(/^\[|\]$/g, ''), port }
}

/** The gateway's part of the file; empty without a file. */
async function readConfig(given: string | undefined): Promise<GatewayConfig> {
  const file = findConfig(given, NAMES)
  if (file === null) return {}
  const loaded = await loadConfig<{ readonly gateway?: unknown }>(file)
  const { gateway } = loaded
  // A file of this command alone may be the configuration itself.
  if (gateway === undefined && given !== undefined && extname(file) === '.json') return loaded as GatewayConfig
  if (gateway === undefined && given !== undefined) throw new Usage(`${file} exports no \`gateway\`.`)
  return (gateway ?? {}) as GatewayConfig
}
