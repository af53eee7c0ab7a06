import { rmSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { runChecks } from './check.ts'
import { compiledFolder, seconds } from './command.ts'
import { discover, type Tier } from './tests/discover.ts'
import { neededServers } from './tests/needs.ts'
import type { Timed } from './tests/results.ts'
import { runTests } from './tests/run.ts'
import { withScratch } from './tests/scratch.ts'
import { withServers } from './tests/servers.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  allowNegative: true,
  options: { checks: { type: 'boolean', default: true }, proof: { type: 'boolean', default: false } },
})
const tier: Tier = values.proof ? 'proof' : 'fast'

const LONGEST_SHOWN = 10

const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort(new Error(signal)))

process.exitCode = await main()

async function main(): Promise<number> {
  const startedMs = performance.now()
  if (values.checks && !(await runChecks(tier, stopping.signal))) return 1
  const files = discover(tier, positionals)
  if (files.length === 0) {
    console.error(`No test file matches ${positionals.join(' ')}`)
    return 1
  }
  // Modules of folders that are gone stay in the cache, so that a whole run starts with an empty one.
  if (positionals.length === 0 && tier === 'fast') rmSync(compiledFolder, { recursive: true, force: true })
  process.env['NODE_COMPILE_CACHE'] ??= compiledFolder
  const { passed, failed, skipped, times } = await withScratch(() =>
    withServers(neededServers(files), () => runTests(files, stopping.signal)),
  )
  if (times.length > LONGEST_SHOWN) console.log(longest(times))
  console.log(`\n${files.length} files in ${seconds(startedMs)}${stopping.signal.aborted ? ', interrupted' : ''}`)
  console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`)
  return failed > 0 || passed === 0 || stopping.signal.aborted ? 1 : 0
}

function longest(times: readonly Timed[]): string {
  const rows = times.toSorted((a, b) => b.tookMs - a.tookMs).slice(0, LONGEST_SHOWN)
  return [
    '\nThe longest:',
    ...rows.map(({ what, tookMs }) => `${(tookMs / 1_000).toFixed(1).padStart(7)}s ${what}`),
  ].join('\n')
}
