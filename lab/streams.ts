import { parseArgs } from 'node:util'
import type { StreamRun, StreamSimulationOptions } from '../src/testing/stream-simulation.ts'
import { simulateStreams } from '../src/testing/stream-simulation.ts'

/**
 * The design question of streams: a hundred participants in five regions, two partitions, a quarter of them offline for
 * half a minute and half of those back in another region, one on a link of 500 ms, answers at the same moment, regions
 * and clients that crash. For each of them: every message once, never before its causes, and one final order.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    from: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '1000' },
    /** The form of the tests: 20 clients, 3 regions, 15 seconds. */
    short: { type: 'boolean', default: false },
    /** Goes on after a failure and counts the broken rules. */
    count: { type: 'boolean', default: false },
    lines: { type: 'string', default: '60' },
  },
})

const full: Omit<StreamSimulationOptions, 'seed'> = {
  clients: 100,
  regions: 5,
  durationMs: 60_000,
  messages: 3,
  storm: { absences: 25, absenceMs: 30_000, crashes: 3, restarts: 10, cuts: 20, moves: 10, partitions: 2 },
}
const form = values.short ? { messages: 2 } : full

Error.stackTraceLimit = values.seed === undefined ? 0 : Error.stackTraceLimit

if (values.seed !== undefined) tell(await simulateStreams({ ...form, seed: Number(values.seed) }))
else await runMany(Number(values.from), Number(values.seeds))

function tell({ seed, failure, virtualMs, tally, tail }: StreamRun): void {
  console.log(tail(Number(values.lines)).join('\n'))
  console.log(`\nseed ${seed}: ${Math.round(virtualMs / 1_000)} virtual s`)
  console.log(JSON.stringify(tally))
  if (failure === null) return
  console.log(`\nBROKEN ${failure.rule} at ${Math.round(failure.atMs)}: ${failure.text}`)
  console.log(`Replay: npm run lab -- streams --seed ${seed}${values.short ? ' --short' : ''} --lines 600`)
  process.exitCode = 1
}

async function runMany(from: number, count: number): Promise<void> {
  const startedMs = performance.now()
  const every = values.short ? 100 : 10
  const broken = new Map<string, number[]>()
  const sum: Record<string, number> = {}
  for (let done = 0; done < count; done++) {
    const run = await simulateStreams({ ...form, seed: from + done })
    for (const [name, value] of Object.entries(run.tally)) sum[name] = (sum[name] ?? 0) + value
    if (run.failure !== null) {
      if (!values.count) return tell(run)
      broken.set(run.failure.rule, [...(broken.get(run.failure.rule) ?? []), run.seed])
    }
    if ((done + 1) % every > 0 && done + 1 < count) continue
    const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1)
    console.log(`${done + 1} seeds up to ${from + done}, ${seconds} s, ${JSON.stringify(sum)}`)
  }
  for (const [rule, seeds] of broken) console.log(`${rule}: ${seeds.length} seeds, ${seeds.slice(0, 8).join(' ')}`)
  if (broken.size > 0) process.exitCode = 1
}
