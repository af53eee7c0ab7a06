import { parseArgs } from 'node:util'
import { simulateRuns } from '../test/proof/runs/simulation/world.ts'

/**
 * `npm run lab -- run-simulation`: made-up runs in virtual time, many seeds; `--seed 7` shows what one of them breaks.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    from: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '2000' },
  },
})

// Errors are expected here, and their stack traces are not used.
Error.stackTraceLimit = 0

const PROGRESS_SEEDS = 100
const from = Number(values.seed ?? values.from)
const count = values.seed === undefined ? Number(values.seeds) : 1
const startedMs = performance.now()
const broken = new Map<string, number[]>()
let sent = 0
let crashes = 0
for (let done = 1; done <= count; done++) {
  const seed = from + done - 1
  const result = await simulateRuns(seed)
  sent += result.sent
  crashes += result.crashes
  if (result.broken !== null) {
    const { rule, text } = result.broken
    broken.set(rule, [...(broken.get(rule) ?? []), seed])
    console.log(`BROKEN ${rule}, seed ${seed}: ${values.seed === undefined ? text.slice(0, 300) : text}`)
  }
  if (done % PROGRESS_SEEDS === 0 || done === count) {
    const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1)
    console.log(`${done} of ${count} seeds, ${sent} sends, ${crashes} crashes, ${seconds} s`)
  }
}
for (const [rule, seeds] of broken) console.log(`${rule}: ${seeds.length} seeds, ${seeds.slice(0, 8).join(' ')}`)
if (broken.size > 0) process.exitCode = 1
