import { BadSetting, type Config, help, readConfig } from './config.ts'
import type { Service } from './service.ts'
import { startService } from './service.ts'

const args = process.argv.slice(2)

if (args.includes('--help')) console.log(help())
else if (args.length > 0) refuse(`${args[0]}: unknown option; --help lists what can be set`)
else await start()

async function start(): Promise<void> {
  try {
    const config = readConfig(process.env)
    const service = await startService(config)
    const stop = () => void service.stop()
    process.once('SIGTERM', stop).once('SIGINT', stop)
    console.log(greeting(config, service))
  } catch (error) {
    if (!(error instanceof BadSetting)) throw error
    refuse(error.message)
  }
}

function greeting({ dataFolder, storeUrl }: Config, { url, demoKey }: Service): string {
  const body = JSON.stringify({
    caseId: 'CASE-100',
    targetQueue: 'LEGAL_REVIEW',
    reason: 'Customer disputes the invoice',
  })
  return [
    `Onceonly listens on ${url} and keeps its data in ${storeUrl === null ? dataFolder : 'PostgreSQL'}`,
    `The API key of the demo workspace is ${demoKey}`,
    'Try this twice:',
    `curl -i ${url}/case-escalations -H 'Content-Type: application/json' -H 'Authorization: Bearer ${demoKey}' -H 'Idempotency-Key: try-1' -d '${body}'`,
  ].join('\n')
}

function refuse(line: string): void {
  console.error(line)
  process.exitCode = 1
}
