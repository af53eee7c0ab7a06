import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Engine } from 'onceonly/run'
import { createEngine, stepKey } from 'onceonly/run'
import type { Random } from '../../../src/testing/random.ts'
import { until } from '../../../src/testing/until.ts'
import type { Child } from '../../support/crew.ts'
import type { Place } from '../../support/place.ts'
import { sqlStore } from '../../support/place.ts'
import { quietLedger } from '../../support/quiet-ledger.ts'
import type { Counter } from './counter.ts'
import { startCounter } from './counter.ts'
import { blindBodies, keyedSteps, parcel, stepsOfParcel } from './parcel.ts'
import type { Odd, VictimTask } from './victim.ts'

export interface KillOptions {
  readonly runs: number
  readonly workers: number
  readonly kills: number
  readonly random: Random
  readonly progress?: (finished: number, kills: number) => void
}

export interface KillFigures {
  readonly runs: number
  readonly kills: number
  readonly acts: number
  /** Requests beyond the first of a key: what a provider with idempotency keys answers from its records. */
  readonly repeated: number
  /** Steps with an unknown outcome, which an operator resolved from the provider's records. */
  readonly unknown: number
}

/** Longer than a busy machine keeps a worker from its heartbeat, so that only the dead lose their runs. */
const LEASE_MS = 3_000
/** Without any progress for so long, the runs are stuck. */
const PATIENCE_MS = 120_000
const CONCURRENCY = 6
const LOOK_MS = 250
const idOf = (index: number) => `parcel ${index}`

/** Workers die at random moments of real runs; then the provider's book and the runs' records must agree. */
export async function killWorkers(place: Place, options: KillOptions): Promise<KillFigures> {
  const { runs, random } = options
  await using counter = await startCounter({ random, mostMs: 60 })
  await using engine = await createEngine({ ledger: quietLedger(sqlStore(place.store)), runs: [parcel], work: false })
  const input = (number: number) => ({ url: counter.url, number })
  await Promise.all(Array.from({ length: runs }, (_, n) => engine.start(parcel, { runId: idOf(n), input: input(n) })))
  const storm = startStorm(place, counter, options)
  let unknown = 0
  let [seen, stuckMs] = ['', 0]
  for (let finished = 0; finished < runs; ) {
    unknown += await resolveAll(engine, counter)
    finished = (await allOf(engine, 'succeeded')).length
    const now = `${finished} runs, ${counter.requests} requests, ${unknown} looked up`
    stuckMs = now === seen ? stuckMs + LOOK_MS : 0
    seen = now
    assert.ok(
      stuckMs < PATIENCE_MS,
      `Nothing new of ${runs} runs for ${PATIENCE_MS} ms: ${seen}; ${JSON.stringify(await unfinished(engine))}`,
    )
    options.progress?.(finished, storm.kills())
    assert.deepEqual(await allOf(engine, 'failed'), [])
    await sleep(LOOK_MS)
  }
  await storm.end()
  return { ...checkBooks(counter, runs), runs, kills: storm.kills(), unknown }
}

/** Kills are spread over the work, not over time: so a slow machine sees as many as a fast one. */
function startStorm(place: Place, counter: Counter, { workers, kills: wanted, runs, random }: KillOptions) {
  let started = 0
  let kills = 0
  let over = false
  const ready = new Set<Child>()
  const start = () => {
    const task: VictimTask = {
      address: place.address,
      name: `victim ${++started}`,
      leaseMs: LEASE_MS,
      concurrency: CONCURRENCY,
    }
    const child = place.crew.start({ file: import.meta.resolve('./victim.ts'), task })
    child.heard('ready').then(
      () => ready.add(child),
      () => {},
    )
    return child
  }
  const crew: Child[] = Array.from({ length: workers }, start)
  const everySteps = Math.floor((runs * stepsOfParcel) / (wanted + 1))
  const killing = (async () => {
    while (kills < wanted && !over) {
      await Promise.race([counter.asked((kills + 1) * everySteps), sleep(LOOK_MS)])
      if (counter.requests < (kills + 1) * everySteps) continue
      // Of those that work: waiting for one that only starts, the others would finish before it could be killed.
      const readySlots = () => [...crew.entries()].flatMap(([at, child]) => (ready.has(child) ? [at] : []))
      const slot = random.pick(await until('a worker is ready', readySlots, ({ length }) => length > 0))
      await sleep(random.below(50))
      crew[slot]?.signal('SIGKILL')
      await crew[slot]?.ended
      crew[slot] = start()
      kills += 1
    }
  })()
  return {
    kills: () => kills,
    async end() {
      over = true
      await killing
      assert.deepEqual(
        crew.flatMap((child) => child.heardSoFar<Odd>('odd')),
        [],
      )
      for (const child of crew) child.signal('SIGKILL')
      await Promise.all(crew.map(({ ended }) => ended))
    },
  }
}

/** As an operator does: what the provider has recorded was done. */
async function resolveAll(engine: Engine, counter: Counter): Promise<number> {
  let resolved = 0
  for (const runId of await allOf(engine, 'unknown')) {
    const { steps, failure } = await engine.get(runId)
    // Three of its workers were killed in a row before it could record anything.
    if (failure?.code === 'run_parked') await engine.resume(runId)
    for (const { key, plan, state } of steps) {
      if (state !== 'unknown') continue
      const body = JSON.stringify((plan as { readonly body: unknown }).body)
      const done = counter.acts.has(body)
      await engine.resolve(runId, key, done ? { kind: 'succeeded', result: 'looked up' } : { kind: 'not_done' })
      resolved += 1
    }
  }
  return resolved
}

async function allOf(engine: Engine, state: 'succeeded' | 'failed' | 'unknown'): Promise<string[]> {
  const ids: string[] = []
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<Engine['list']>> = await engine.list({ state, cursor })
    ids.push(...page.runs.map(({ runId }) => runId))
    cursor = page.cursor
  } while (cursor !== null)
  return ids
}

async function unfinished(engine: Engine): Promise<unknown> {
  const { runs } = await engine.list({ limit: 500 })
  const [first] = runs.filter(({ endedAt }) => endedAt === null)
  return first === undefined ? null : engine.get(first.runId)
}

/** Every step acted once: under one key, or, without one, for one body. */
function checkBooks({ acts, requests }: Counter, runs: number): Pick<KillFigures, 'acts' | 'repeated'> {
  const expected = Array.from({ length: runs }, (_, number) => [
    ...keyedSteps.map(([step, tick]) => stepKey(idOf(number), step, tick)),
    ...blindBodies(number),
  ]).flat()
  assert.deepEqual(
    expected.filter((name) => acts.get(name) !== 1),
    [],
    'each step acted once',
  )
  assert.equal(acts.size, expected.length, 'and nothing else did')
  return { acts: acts.size, repeated: requests - acts.size }
}
