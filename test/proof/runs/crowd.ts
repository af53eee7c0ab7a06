import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Engine, RunView } from 'onceonly/run'
import { createEngine } from 'onceonly/run'
import type { Random } from '../../../src/testing/random.ts'
import type { Child } from '../../support/crew.ts'
import type { Place } from '../../support/place.ts'
import { sqlStore } from '../../support/place.ts'
import { quietLedger } from '../../support/quiet-ledger.ts'
import { type CrowdTask, crowdQueue, crowdRun } from './crowd-worker.ts'

export interface CrowdOptions {
  readonly runs: number
  /** Processes; all but one of them may be killed. */
  readonly workers: number
  readonly kills: number
  readonly concurrency: number
  readonly perKey: number
  readonly rate: { readonly limit: number; readonly perMs: number }
  readonly random: Random
  readonly progress?: (ended: number) => void
}

export interface CrowdFigures {
  readonly runs: number
  readonly kills: number
  /** The most that had begun and not ended, in all and of one key. */
  readonly places: number
  readonly placesOfAKey: number
  /** The most at work at once, in all and of one key: by the journals. */
  readonly most: number
  readonly mostOfAKey: number
  /** The most that began within one span. */
  readonly mostInSpan: number
  /** Pairs of runs of different priority that were compared. */
  readonly compared: number
  readonly seconds: number
}

/** Keys that many runs have; every fourth run has one of its own, so that only its priority decides. */
const KEYS = 8
const PRIORITIES = 3
const WORK_MS = 40
/** Without any progress for so long, the runs are stuck. */
const PATIENCE_MS = 120_000
const LOOK_MS = 50
const READ_AT_ONCE = 50
const ENQUEUE_AT_ONCE = 1_000

const idOf = (index: number) => `crowd ${index}`
const isAlone = (index: number) => index % 4 === 0
const keyOf = (index: number) => (isAlone(index) ? idOf(index) : `key ${index % KEYS}`)
const priorityOf = (index: number) => index % PRIORITIES

/** Workers of a queue are killed while they drive its runs; then the times in the journals must keep its limits. */
export async function crowd(place: Place, options: CrowdOptions): Promise<CrowdFigures> {
  const { runs, concurrency, perKey, rate, random, progress = () => {} } = options
  const startedMs = performance.now()
  const limits = { concurrency, perKey, rate }
  const [run, queue] = [crowdRun(place.store), crowdQueue(limits)]
  await using engine = await createEngine({
    ledger: quietLedger(sqlStore(place.store)),
    runs: [run],
    queues: [queue],
    work: false,
  })
  await engine.queues.pause('crowd')
  const enqueue = (index: number) =>
    engine.enqueue(run, {
      queue,
      runId: idOf(index),
      key: keyOf(index),
      priority: priorityOf(index),
      input: { workMs: random.below(WORK_MS) },
    })
  for (let from = 0; from < runs; from += ENQUEUE_AT_ONCE) {
    const count = Math.min(ENQUEUE_AT_ONCE, runs - from)
    await Promise.all(Array.from({ length: count }, (_, at) => enqueue(from + at)))
  }
  const crew = Array.from({ length: options.workers }, (_, index) => {
    const task: CrowdTask = { address: place.address, name: `crowd ${index}`, concurrency, queue: limits }
    return place.crew.start({ file: import.meta.resolve('./crowd-worker.ts'), task })
  })
  await Promise.all(crew.map((child) => child.heard('ready')))
  await engine.queues.resume('crowd')
  await workThrough(engine, crew, options, progress)
  const figures = judge(await viewsOf(engine, runs), options)
  return { ...figures, runs, kills: options.kills, seconds: (performance.now() - startedMs) / 1_000 }
}

async function viewsOf(engine: Engine, runs: number): Promise<readonly RunView[]> {
  const views: RunView[] = []
  while (views.length < runs) {
    const next = Array.from({ length: Math.min(READ_AT_ONCE, runs - views.length) }, (_, at) => views.length + at)
    views.push(...(await Promise.all(next.map((index) => engine.get(idOf(index))))))
  }
  return views
}

/** Kills are spread over the work, not over time. */
async function workThrough(
  engine: Engine,
  crew: readonly Child[],
  { runs, kills }: CrowdOptions,
  progress: (ended: number) => void,
): Promise<void> {
  const countOf = async () => {
    const [view] = await engine.queues.list()
    if (view === undefined) return assert.fail('there is no queue')
    const { waiting, blocked, delayed, running } = view
    const ended = runs - waiting - blocked - delayed - running
    progress(ended)
    return ended
  }
  const until = async (wanted: number) => {
    let [seen, since] = [-1, performance.now()]
    for (let ended = await countOf(); ended < wanted; ended = await countOf()) {
      if (ended > seen) [seen, since] = [ended, performance.now()]
      assert.ok(
        performance.now() - since < PATIENCE_MS,
        `stuck after ${ended} runs: ${JSON.stringify(await engine.queues.list())}`,
      )
      await sleep(LOOK_MS)
    }
  }
  for (let killed = 0; killed < kills; killed++) {
    const wanted = Math.floor(((killed + 1) * runs) / (kills + 2))
    await until(wanted)
    crew[killed]?.signal('SIGKILL')
    await crew[killed]?.ended
  }
  await until(runs)
  assert.deepEqual(
    crew.flatMap((child) => child.heardSoFar('odd')),
    [],
  )
}

interface Span {
  readonly from: number
  readonly to: number
}

function judge(views: readonly RunView[], { concurrency, perKey, rate }: CrowdOptions) {
  const rows = views.map(({ runId, state, steps, queue, endedAt }, index) => {
    assert.equal(state, 'succeeded', runId)
    const [enter, , leave] = steps
    const work: Span = { from: enter?.result as number, to: leave?.result as number }
    const place: Span = { from: queue?.admittedAt ?? 0, to: endedAt ?? 0 }
    // Its work lies within its place, by one clock.
    assert.ok(place.from <= work.from && work.from <= work.to && work.to <= place.to, JSON.stringify({ place, work }))
    return { index, key: keyOf(index), priority: priorityOf(index), work, place }
  })
  const byKey = [...Map.groupBy(rows, ({ key }) => key).values()]
  const most = mostAtOnce(rows.map(({ work }) => work))
  const mostOfAKey = Math.max(...byKey.map((those) => mostAtOnce(those.map(({ work }) => work))))
  const mostInSpan = mostWithin(
    rows.map(({ place }) => place.from),
    rate.perMs,
  )
  const places = mostAtOnce(rows.map(({ place }) => place))
  const placesOfAKey = Math.max(...byKey.map((those) => mostAtOnce(those.map(({ place }) => place))))
  assert.ok(placesOfAKey <= perKey)
  assert.ok(places <= concurrency && most <= concurrency && mostOfAKey <= perKey && mostInSpan <= rate.limit)
  // All of them waited before the first one began, and none waits for its key.
  const alone = rows.filter(({ index }) => isAlone(index))
  let compared = 0
  for (let priority = 1; priority < PRIORITIES; priority++) {
    const last = Math.max(...alone.filter((row) => row.priority === priority).map(({ place }) => place.from))
    for (const { place, index } of alone.filter((row) => row.priority === priority - 1)) {
      assert.ok(place.from >= last, `${idOf(index)} began before all of priority ${priority} had begun`)
      compared += 1
    }
  }
  return { places, placesOfAKey, most, mostOfAKey, mostInSpan, compared }
}

/** An end and a begin at one time do not overlap. */
function mostAtOnce(spans: readonly Span[]): number {
  const changes = spans.flatMap(({ from, to }) => (to > from ? [[from, 1] as const, [to, -1] as const] : []))
  let [now, most] = [0, 0]
  for (const [, change] of changes.toSorted(([a, up], [b, down]) => a - b || up - down)) {
    now += change
    most = Math.max(most, now)
  }
  return most
}

function mostWithin(times: readonly number[], spanMs: number): number {
  const sorted = times.toSorted((a, b) => a - b)
  let first = 0
  let most = 0
  for (const [index, time] of sorted.entries()) {
    while (time - (sorted[first] ?? time) >= spanMs) first += 1
    most = Math.max(most, index - first + 1)
  }
  return most
}
