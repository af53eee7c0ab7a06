import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { runSeeds } from './streams/crew.ts'
import { runSeed, type SeedResult } from './streams/form.ts'

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
    short: { type: 'boolean', default: false },
    /** Continues after a failure and counts the broken rules. */
    count: { type: 'boolean', default: false },
    lines: { type: 'string', default: '60' },
    /** Processes at once; a run takes one core. */
    workers: { type: 'string', default: String(availableParallelism()) },
  },
})

const form = { short: values.short, lines: Number(values.lines) }

if (values.seed !== undefined) print(await runSeed(Number(values.seed), form))
else await runMany(Number(values.from), Number(values.seeds))

function print({ seed, failure, virtualMs, tally, lines }: SeedResult): void {
  console.log(lines.join('\n'))
  console.log(`\nseed ${seed}: ${Math.round(virtualMs / 1_000)} virtual s`)
  console.log(JSON.stringify(tally))
  if (failure === null) return
  console.log(`\nBROKEN ${failure.rule} at ${Math.round(failure.atMs)}: ${failure.text}`)
  console.log(`Replay: npm run lab -- streams --seed ${seed}${values.short ? ' --short' : ''} --lines 600`)
  process.exitCode = 1
}

async function runMany(from: number, seeds: number): Promise<void> {
  const startedMs = performance.now()
  const every = values.short ? 100 : 10
  const broken = new Map<string, number[]>()
  const sum: Record<string, number> = {}
  let done = 0
  await runSeeds({ from, seeds, workers: Number(values.workers), form }, (result) => {
    done += 1
    for (const [name, value] of Object.entries(result.tally)) sum[name] = (sum[name] ?? 0) + value
    if (result.failure !== null) {
      if (!values.count) print(result)
      broken.set(result.failure.rule, [...(broken.get(result.failure.rule) ?? []), result.seed])
    }
    if (done % every === 0 || done === seeds) {
      const seconds = (performance.now() - startedMs) / 1_000
      const leftMinutes = ((seconds / done) * (seeds - done)) / 60
      const clean = broken.size === 0 ? 'clean' : 'BROKEN'
      console.log(
        `${done} of ${seeds} seeds from ${from} on, ${clean}, ${seconds.toFixed(1)} s, ` +
          `about ${leftMinutes.toFixed(1)} min left, ${JSON.stringify(sum)}`,
      )
    }
    return values.count || result.failure === null
  })
  if (values.count)
    for (const [rule, which] of broken) console.log(`${rule}: ${which.length} seeds, ${which.join(' ')}`)
  if (broken.size > 0) process.exitCode = 1
}
