import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { residentMib } from '../test/support/resident.ts'
import { openCluster, type TestServer } from '../test/support/service/cluster.ts'

/**
 * `npm run lab -- soak`: the server on its embedded store at a steady load, first sends, duplicates and replays, for as
 * long as asked. Memory stays flat, answers stay quick, and what was asked before `SIGTERM` is answered after it.
 */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    /** Well below what the server can do: the question is time, not speed. */
    'per-second': { type: 'string', default: '100' },
    'report-seconds': { type: 'string', default: '30' },
  },
})

/** What the heap gains or loses from one collection to the next. */
const WAVES_MIB = 48
const GROWTH_MOST = 1.15
const P99_MOST_MS = 1_000
/** Every so many requests repeat an earlier one: half of them by its key, half without. */
const REPEAT_EVERY = 4

interface Sample {
  readonly mib: number
  readonly p99Ms: number
}

const perSecond = Number(values['per-second'])
const endMs = performance.now() + Number(values.minutes) * 60_000
const samples: Sample[] = []
let tookMs: number[] = []
let asked = 0
let failed = 0
const reasons = new Map<string, number>()
let underWay = 0

await using cluster = await openCluster('sqlite', { env: { ONCEONLY_LOG_LEVEL: 'error' } })
const server = cluster.servers[0] as TestServer

function note(why: string): void {
  failed += 1
  reasons.set(why, (reasons.get(why) ?? 0) + 1)
}

async function ask(): Promise<void> {
  const number = asked++
  const again = number % REPEAT_EVERY === 0 && number > 0
  const of = again ? Math.floor(number / 2) : number
  const keyed = of % 2 === 0
  const startedMs = performance.now()
  underWay += 1
  try {
    const body = { recipientEmail: `ann${of}@example.com`, message: `Text ${of}` }
    const { status } = await server.send(body, keyed ? { key: `key-${of}` } : {})
    if (status >= 400) note(String(status))
    tookMs.push(performance.now() - startedMs)
  } catch (error) {
    note(error instanceof Error ? String(error.cause ?? error) : String(error))
  } finally {
    underWay -= 1
  }
}

function report(): void {
  const sorted = tookMs.toSorted((a, b) => a - b)
  tookMs = []
  const p99Ms = sorted[Math.floor(sorted.length * 0.99)] ?? 0
  const mib = residentMib(server.pid)
  samples.push({ mib, p99Ms })
  const left = Math.max(0, Math.round((endMs - performance.now()) / 1_000))
  console.log(
    `${asked} requests, ${failed} failed, ${mib.toFixed(0)} MiB, p99 ${p99Ms.toFixed(0)} ms, ${underWay} under way; ${left} s left`,
  )
}

let nextReportMs = performance.now() + Number(values['report-seconds']) * 1_000
const startedMs = performance.now()
while (performance.now() < endMs) {
  // As many as are due by now, so that a slow moment is caught up with and the load stays what it is.
  const due = Math.floor(((performance.now() - startedMs) / 1_000) * perSecond) - asked
  for (let n = 0; n < due; n++) void ask()
  await pause(10)
  if (performance.now() < nextReportMs) continue
  nextReportMs += Number(values['report-seconds']) * 1_000
  report()
}

const before = underWay
await server.stop()
console.log(`SIGTERM with ${before} requests under way: ${failed} failed in all.`)

const quarter = Math.max(1, Math.floor(samples.length / 4))
const mean = (some: readonly Sample[]) => some.reduce((sum, { mib }) => sum + mib, 0) / some.length
const early = mean(samples.slice(quarter, 2 * quarter))
const late = mean(samples.slice(-quarter))
console.log(`memory: ${early.toFixed(0)} MiB in the second quarter, ${late.toFixed(0)} MiB in the last`)
assert.deepEqual(Object.fromEntries(reasons), {}, 'every request is answered')
assert.ok(late <= early * GROWTH_MOST + WAVES_MIB, 'memory stays flat')
for (const { p99Ms } of samples.slice(-quarter)) assert.ok(p99Ms <= P99_MOST_MS, 'answers stay quick')
