import type { RunContext } from 'onceonly/run'
import { createEngine, defineRun } from 'onceonly/run'
import { HOUR, MINUTE } from '../../../../src/ledger/core/limits.ts'
import type { Random } from '../../../../src/testing/random.ts'
import { quietLedger } from '../../../support/quiet-ledger.ts'
import type { SimulatedProcess } from '../../../support/simulation.ts'
import { createSimulation } from '../../../support/simulation.ts'
import { createSimulatedDatabase } from './database.ts'
import { judge, judgeReplays, stateOf, watchCancels, watchEvents } from './judge.ts'
import { attend, startAll } from './operator.ts'
import type { Breaks, Member, Rule, World } from './parts.ts'
import { everyPart, follow, leaf, makeProgram, makeUndone, originOf } from './program.ts'
import { createOutside } from './provider.ts'
import { aside, line, makeQueued, watchQueue } from './queue.ts'

export interface SimulatedRuns {
  readonly seed: number
  /** The rule that was broken, and how; null when none was. */
  readonly broken: { readonly rule: Rule; readonly text: string } | null
  readonly virtualMs: number
  readonly sent: number
  readonly crashes: number
}

/** Until then things go wrong; from then on nothing does, and everything must come to its end. */
const CALM_MS = 80 * MINUTE
const END_MS = CALM_MS + 5 * HOUR
const MOST_EVENTS = 200_000
/** Different ones, and as many that do the same as these: a process learns from runs what comes behind what. */
const PROGRAMS = 2
const QUEUED = 6
const WORKERS = 2
const START_MS = Date.UTC(2030, 0, 1)
const timing = { leaseMs: 2 * MINUTE, pollMs: MINUTE }

export interface Size {
  /** Different programs of started runs. @default 2 */
  readonly programs?: number
  /** Short runs in a queue. @default 6 */
  readonly queued?: number
  /** Programs with clean-ups, and an operator who cancels and forks often. @default false */
  readonly busyOperator?: boolean
}

/** Some runs have little time, and some continue as new ones. */
function makeWay(random: Random, often: boolean): { readonly isHasty: boolean; readonly turns: number } {
  return { isHasty: random.chance(often ? 0.5 : 0.2), turns: random.chance(often ? 0.5 : 0.2) ? 1 : 0 }
}

/** Runs of one seed: made-up programs, workers that crash, pause and stop, lost answers, jumps of the clock, an operator. */
export async function simulateRuns(seed: number, size: Size = {}): Promise<SimulatedRuns> {
  const { programs: count = PROGRAMS, queued: queuedCount = QUEUED, busyOperator = false } = size
  const simulation = createSimulation({ seed })
  const { random } = simulation
  const isCalm = () => simulation.now() >= CALM_MS
  const database = createSimulatedDatabase(simulation, START_MS)
  const outside = createOutside(simulation, isCalm)
  const made = Array.from({ length: count }, () => (busyOperator ? makeUndone(random) : makeProgram(random)))
  const queued = makeQueued(random, queuedCount)
  const programs = new Map([
    ...[...made, ...made].map((program, index) => [`run ${index}`, program] as const),
    ...[...queued].map(([runId, { parts }]) => [runId, parts] as const),
  ])
  const ways = new Map([...programs.keys()].map((runId) => [runId, makeWay(random, busyOperator)]))
  const programOf = (runId: string) => programs.get(originOf(runId) ?? '') ?? null
  const seen = new Map<string, string>()
  let broken: SimulatedRuns['broken'] = null
  let crashes = 0

  const breaks: Breaks = (rule, text) => {
    broken ??= { rule, text }
  }

  function saw(place: string, value: unknown): void {
    const text = JSON.stringify(value)
    const before = seen.get(place) ?? text
    seen.set(place, before)
    if (before !== text) breaks('values_differ', `${place}: ${before}, then ${text}`)
  }

  const wire = {
    latencyMs: () => random.below(30),
    fate: () => {
      if (isCalm() || !random.chance(0.02)) return 'fine'
      return random.chance(0.5) ? 'request_lost' : 'answer_lost'
    },
  } as const

  async function join(process: SimulatedProcess, work: boolean): Promise<Member> {
    const stage = { process, outside, saw }
    const body = async (run: RunContext, turns: number): Promise<unknown> => {
      const value = await follow(run, programOf(run.runId) ?? [], stage)
      return turns > 0 ? run.continueAsNew(turns - 1) : value
    }
    const program = defineRun('program', body)
    const hasty = defineRun('hasty', body, { timeoutMs: 20 * MINUTE })
    const store = database.connect(process, wire)
    const engine = await createEngine({
      ledger: quietLedger(store),
      runs: [program, hasty, leaf],
      queues: [line, aside],
      runtime: process.runtime,
      work,
      ...timing,
    })
    return {
      engine,
      async start(runId) {
        const ticket = queued.get(runId)?.ticket
        const { isHasty = false, turns = 0 } = ways.get(runId) ?? {}
        if (ticket !== undefined) {
          const found = await engine.enqueue(program, { queue: line, runId, input: turns, ...ticket })
          if (found.runId !== runId) throw new Error(`${found.runId} has its dedupKey`)
        } else await engine.start(isHasty ? hasty : program, { runId, input: turns })
      },
    }
  }

  /** One worker after the other: each of them ends in its own way. */
  async function work(): Promise<void> {
    while (!isCalm()) {
      const process = simulation.process({ skewMs: random.below(1_000) })
      const born = join(process, true).catch(() => null)
      const member = await Promise.race([born, simulation.after(MINUTE).then(() => null)])
      await simulation.after(random.below(25 * MINUTE))
      const end = random.pick(['crash', 'crash', 'pause', 'stop'] as const)
      if (end === 'pause') {
        process.pause(random.below(20 * MINUTE))
        await simulation.after(random.below(20 * MINUTE))
      }
      if (end === 'stop') void member?.engine.stop().catch(() => undefined)
      await simulation.after(random.below(MINUTE))
      process.crash()
      crashes += 1
    }
    await join(simulation.process(), true)
  }

  async function jump(): Promise<void> {
    while (!isCalm()) {
      await simulation.after(random.below(60 * MINUTE))
      database.jump(random.below(15 * MINUTE))
    }
  }

  for (let worker = 0; worker < WORKERS; worker++) void work()
  void jump()
  const tickets = new Map([...queued].map(([runId, { ticket }]) => [runId, ticket]))
  watchQueue(database, tickets, breaks)
  watchEvents(database, breaks)
  watchCancels(database, breaks)
  const world: World = { simulation, database, outside, programs, programOf, breaks, isCalm, join, busyOperator }
  void startAll(world)
  const operator = attend(world)
  const end = await simulation.run({
    untilMs: END_MS,
    events: MOST_EVENTS,
    enough: () => broken !== null || (isCalm() && operator.isDone()),
  })
  if (end !== 'enough') breaks('not_ended', `${end}: ${JSON.stringify(stateOf(database))}`)
  judge(world, operator.cancelled)
  if (broken === null) await judgeReplays(world)
  const steps = [...programs].flatMap(([runId, parts]) => everyPart(parts).map(({ id }) => `${runId} ${id}`))
  const sent = steps.reduce((sum, step) => sum + outside.asked(step), 0)
  database.stop()
  return { seed, broken, virtualMs: simulation.now(), sent, crashes }
}
