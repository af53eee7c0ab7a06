import { appendFileSync, closeSync, openSync, writeSync } from 'node:fs'
import type { LeasedOperation } from 'onceonly'
import { createLedger, isOnceError, notDone } from 'onceonly'
import type { Random } from 'onceonly/testing'
import { createRandom, createRecordingStore } from 'onceonly/testing'
import { listen, readTask, report } from '../crash/member.ts'
import { openArena } from './arena.ts'
import type { Finished, RaceTask } from './race.ts'

/** One of the processes of a race: many attempts at few identities, through the public ledger. */

const task = readTask<RaceTask>()
const { store, close } = openArena(task.address)
const history = openSync(task.historyFile, 'a')
const recorded = createRecordingStore(store, {
  process: `p${task.process}`,
  write: (event) => void writeSync(history, `${JSON.stringify(event)}\n`),
})

/** Ledgers of one process share neither joins nor answers: each is as good as another process to the store. */
const LEDGERS = 4
const LANES_PER_LEDGER = 4

const ledgers = Array.from({ length: LEDGERS }, () => createLedger({ store: recorded }))
const operations = ledgers.map((ledger) => {
  return ledger.operation({
    name: 'race',
    effect: 'external',
    fingerprint: (key: string) => key,
    whileRunning: { waitMs: 5_000 },
  })
})

const counts: Record<string, number> = {}
const count = (what: string) => {
  counts[what] = (counts[what] ?? 0) + 1
}

/** Mostly fails before it has done anything, so that every identity is raced for again and again. */
async function effect(key: string, random: Random): Promise<string> {
  await new Promise((resolve) => void setTimeout(resolve, random.below(4)))
  if (random.chance(0.9)) throw notDone(new Error('not this time'), { retryAfterMs: 0 })
  const token = random.id()
  // A line shorter than a page, appended: the operating system keeps those of several processes apart.
  appendFileSync(task.effectsFile, `${JSON.stringify({ key, token, process: task.process })}\n`)
  return token
}

async function attempt(operation: LeasedOperation<string>, key: string, random: Random): Promise<boolean> {
  const who = { tenant: 'race', caller: 'racer', key }
  const result = await operation.execute(who, key, () => effect(key, random))
  if (result.kind === 'refused') {
    count(result.error.code)
    // Whatever is not worth another try is not part of this game.
    if (!isOnceError(result.error) || !result.error.retryable) throw result.error
    return false
  }
  if (result.kind === 'failed') throw result.error
  count(result.kind)
  appendFileSync(task.answersFile, `${JSON.stringify({ key, token: result.value })}\n`)
  return true
}

async function lane(operation: LeasedOperation<string>, random: Random, attempts: number): Promise<void> {
  for (let left = attempts; left > 0; left--) await attempt(operation, `k${random.below(task.identities)}`, random)
}

/** Finishes what the lanes left unfinished, so that a race ends with everything done. */
async function finish(operation: LeasedOperation<string>, random: Random): Promise<void> {
  for (let key = 0; key < task.identities; key++) {
    while (!(await attempt(operation, `k${key}`, random))) await new Promise((resolve) => void setTimeout(resolve, 5))
  }
}

report({ kind: 'ready' })
await listen().next()
const lanes = operations.flatMap((operation) => Array.from({ length: LANES_PER_LEDGER }, () => operation))
const perLane = Math.ceil(task.attempts / lanes.length)
await Promise.all(lanes.map((operation, index) => lane(operation, createRandom(1_000 * task.process + index), perLane)))
const [first] = operations
if (first !== undefined) await finish(first, createRandom(7_919 * (task.process + 1)))
for (const ledger of ledgers) await ledger.stop()
await close()
closeSync(history)
report<Finished>({ kind: 'finished', counts })
process.exit(0)
