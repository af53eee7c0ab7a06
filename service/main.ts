import { join, resolve } from 'node:path'
import { BadSetting, type Config, help, readConfig } from './config.ts'
import type { Service } from './service.ts'
import { startService } from './service.ts'
import { demoKeyFile } from './workspaces/demo.ts'

const args = process.argv.slice(2)

if (args.includes('--help')) console.log(help())
else if (args.length > 0) refuse(`${args[0]}: unknown option; --help lists what can be set`)
else await start()

async function start(): Promise<void> {
  try {
    const config = readConfig(process.env)
    const service = await startService(config)
    const stop = (signal: string) => void stopped(service, signal)
    process.once('SIGTERM', stop).once('SIGINT', stop)
    console.log(greeting(config, service))
    service.log.info({ event: 'server.started', url: service.url }, 'The server has started')
  } catch (error) {
    if (!(error instanceof BadSetting)) throw error
    refuse(error.message)
  }
}

/** What runs is finished first, so that no answer is cut. */
async function stopped({ log, stop }: Service, signal: string): Promise<void> {
  const begin = performance.now()
  log.info({ event: 'server.stopping', signal }, 'The server stops')
  try {
    await stop()
    log.info({ event: 'server.stopped', durationMs: Math.round(performance.now() - begin) }, 'The server has stopped')
  } catch (error) {
    log.fatal({ event: 'server.stop_failed', err: error }, 'The server could not stop as it should')
    process.exitCode = 1
  }
}

function greeting(config: Config, { url }: Service): string {
  const { dataFolder, storeUrl, operatorToken, viewerToken, demo } = config
  return [
    `Onceonly listens on ${url} and keeps its data in ${storeUrl === null ? dataFolder : 'PostgreSQL'}`,
    `Its API is described at ${url}/docs, and people talk at ${url}/chat`,
    operatorToken === null && viewerToken === null
      ? `Its console is ${url}/console, for this machine only; the token is in ${join(dataFolder, 'operator-token')}`
      : `Its console is ${url}/console, for holders of a token`,
    ...(demo ? tryThis(config, url) : ['It has no demo workspace: operators add workspaces and keys at /api/admin']),
  ].join('\n')
}

/** A reader of the server's output learns where the key is, and not the key. */
function tryThis(config: Config, url: string): readonly string[] {
  const [place, key] =
    config.demoKey === null
      ? [`in ${demoKeyFile(config)}`, `$(cat ${quoted(resolve(demoKeyFile(config)))})`]
      : ['the value of ONCEONLY_DEMO_KEY', '$ONCEONLY_DEMO_KEY']
  const body = JSON.stringify({
    caseId: 'CASE-100',
    targetQueue: 'LEGAL_REVIEW',
    reason: 'Customer disputes the invoice',
  })
  return [
    `The API key of the demo workspace is ${place}`,
    'Try this twice:',
    `curl -i ${url}/case-escalations -H 'Content-Type: application/json' -H "Authorization: Bearer ${key}" -H 'Idempotency-Key: try-1' -d '${body}'`,
  ]
}

/** As a word of a shell, also inside of double quotes. */
function quoted(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`
}

function refuse(line: string): void {
  console.error(line)
  process.exitCode = 1
}
