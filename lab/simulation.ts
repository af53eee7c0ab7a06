import { parseArgs } from 'node:util'
import type { RunResult } from './simulation/run.ts'
import { simulateLedger } from './simulation/run.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    from: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '10000' },
    reset: { type: 'boolean', default: false },
    /** Continues after a failure and counts the broken rules. */
    count: { type: 'boolean', default: false },
    lines: { type: 'string', default: '80' },
  },
})

// Errors are expected here, and their stack traces are not used.
Error.stackTraceLimit = values.seed === undefined ? 0 : Error.stackTraceLimit

const options = { reset: values.reset }
if (values.seed !== undefined) await replay(Number(values.seed))
else await runMany(Number(values.from), Number(values.seeds))

function print({ seed, failure, hash, events, virtualMs, tally, tail }: RunResult): void {
  console.log(tail(Number(values.lines)).join('\n'))
  console.log(`\nseed ${seed}: ${events} events in ${Math.round(virtualMs / 1_000)} virtual s, log ${hash}`)
  console.log(JSON.stringify(tally))
  if (failure === null) return
  console.log(`\nBROKEN ${failure.rule} at ${Math.round(failure.atMs)}: ${failure.text}`)
  console.log(`Replay: npm run lab -- simulation --seed ${seed}${values.reset ? ' --reset' : ''} --lines 600`)
  process.exitCode = 1
}

async function replay(seed: number): Promise<void> {
  print(await simulateLedger(seed, options))
}

async function runMany(from: number, count: number): Promise<void> {
  const startedMs = performance.now()
  const broken = new Map<string, number[]>()
  let events = 0
  for (let done = 0; done < count; done++) {
    const result = await simulateLedger(from + done, options)
    events += result.events
    if (result.failure !== null) {
      if (!values.count) return print(result)
      broken.set(result.failure.rule, [...(broken.get(result.failure.rule) ?? []), result.seed])
    }
    if ((done + 1) % 500 === 0 || done + 1 === count) progress(from + done, done + 1, events, startedMs)
  }
  for (const [rule, seeds] of broken) console.log(`${rule}: ${seeds.length} seeds, ${seeds.slice(0, 8).join(' ')}`)
  if (broken.size > 0) process.exitCode = 1
}

function progress(seed: number, done: number, events: number, startedMs: number): void {
  const seconds = (performance.now() - startedMs) / 1_000
  console.log(`${done} seeds up to ${seed}, ${events} events, ${seconds.toFixed(1)} s`)
}
