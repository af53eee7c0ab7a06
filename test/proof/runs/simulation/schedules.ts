import { createEngine, defineQueue, defineRun, schedule } from 'onceonly/run'
import { DAY, HOUR, MINUTE } from '../../../../src/ledger/core/limits.ts'
import { quietLedger } from '../../../support/quiet-ledger.ts'
import type { SimulatedProcess } from '../../../support/simulation.ts'
import { createSimulation } from '../../../support/simulation.ts'
import { createSimulatedDatabase } from './database.ts'

export interface SimulatedSchedules {
  readonly seed: number
  /** What was wrong; empty when every tick started one run. */
  readonly wrong: readonly string[]
  readonly ticks: number
  readonly jumps: number
  readonly crashes: number
}

/** In the night to the fifth day clocks in Berlin go from 2:00 to 3:00. */
const START_MS = Date.UTC(2030, 2, 27, 0, 10)
const DAYS = 10
const WORKERS = 3
const EVERY_MS = 30 * MINUTE
/** A tick of a schedule that catches up with none is not started later. */
const MISSED_MS = MINUTE
const MOST_EVENTS = 2_000_000
const timing = { leaseMs: 20 * MINUTE, pollMs: 30 * MINUTE }

/** Ten days of schedules: processes crash, pause and stop, answers are lost, and the store's clock jumps both ways. */
export async function simulateSchedules(seed: number, days = DAYS): Promise<SimulatedSchedules> {
  /** Once nothing goes wrong any more. */
  const calmMs = days * DAY
  const simulation = createSimulation({ seed })
  const { random } = simulation
  const isCalm = () => simulation.now() >= calmMs
  const database = createSimulatedDatabase(simulation, START_MS)
  let [jumps, crashes] = [0, 0]

  const wire = {
    latencyMs: () => random.below(30),
    fate: () => {
      if (isCalm() || !random.chance(0.02)) return 'fine'
      return random.chance(0.5) ? 'request_lost' : 'answer_lost'
    },
  } as const

  async function join(process: SimulatedProcess) {
    const report = defineRun('report', async (run, tick: string) => run.step('send', () => tick))
    const input = (tick: Date) => tick.toISOString()
    const slow = defineRun('slow', (run) => run.sleep('longer than until the next tick', 90 * MINUTE))
    const schedules = [
      schedule('often', { run: report, input, cron: '*/30 * * * *', overlap: 'queue', catchUp: 'all' }),
      schedule('daily', { run: report, input, cron: '30 2 * * *', timezone: 'Europe/Berlin' }),
      schedule('queued', { run: report, input, cron: '0 * * * *', catchUp: 'all', overlap: 'queue', queue: 'reports' }),
      schedule('replaced', { run: slow, input: null, cron: '0 * * * *', overlap: 'cancel' }),
      schedule('fresh', { run: report, input, cron: '*/30 * * * *', catchUp: 'none' }),
    ]
    const store = database.connect(process, wire)
    return await createEngine({
      ledger: quietLedger(store),
      runs: [report, slow],
      queues: [defineQueue('reports', { concurrency: 1 })],
      schedules,
      runtime: process.runtime,
      ...timing,
    })
  }

  /** One worker after the other: each of them ends in its own way. */
  async function work(): Promise<void> {
    while (!isCalm()) {
      const process = simulation.process({ skewMs: random.below(1_000) })
      const born = join(process).catch(() => null)
      const engine = await Promise.race([born, simulation.after(MINUTE).then(() => null)])
      await simulation.after(random.below(12 * HOUR))
      const end = random.pick(['crash', 'crash', 'pause', 'stop'] as const)
      if (end === 'pause') {
        process.pause(random.below(2 * HOUR))
        await simulation.after(random.below(2 * HOUR))
      }
      if (end === 'stop') void engine?.stop().catch(() => undefined)
      await simulation.after(random.below(MINUTE))
      process.crash()
      crashes += 1
    }
    await join(simulation.process())
  }

  async function jump(): Promise<void> {
    for (;;) {
      await simulation.after(random.below(12 * HOUR))
      if (isCalm()) return
      database.jump(random.pick([1, -1]) * random.below(2 * HOUR))
      jumps += 1
    }
  }

  for (let worker = 0; worker < WORKERS; worker++) void work()
  void jump()
  const crowded = new Set<string>()
  database.watch(() => {
    for (const name of ['often', 'queued', 'replaced']) if (countLive(database, name) > 1) crowded.add(name)
  })
  await simulation.run({ untilMs: calmMs + 6 * HOUR, events: MOST_EVENTS })
  const rows = database.look('select id, state, started_at as started from onceonly_runs order by id') as Row[]
  const now = database.now()
  const hours = halfHours(now).filter((at) => at % HOUR === 0)
  const wrong = [
    ...[...crowded].map((name) => `two runs of ${name} at once`),
    ...judge('often', rows, halfHours(now)),
    ...judge('daily', rows, nights(now, days)),
    ...judge('queued', rows, hours),
    ...judgeSome('replaced', rows, hours, Number.POSITIVE_INFINITY),
    ...judgeSome('fresh', rows, halfHours(now), MISSED_MS),
  ]
  database.stop()
  return { seed, wrong, ticks: rows.length, jumps, crashes }
}

interface Row {
  readonly id: string
  readonly state: string
  readonly started: number
}

/** Every tick started one run, under its name, not before its time; and nothing else was started. */
function judge(name: string, rows: readonly Row[], expected: readonly number[]): string[] {
  const found = new Map(rows.filter(({ id }) => id.startsWith(`schedule:${name}:`)).map((row) => [row.id, row]))
  const wrong: string[] = []
  for (const tick of expected) {
    const id = `schedule:${name}:${new Date(tick).toISOString()}`
    const row = found.get(id)
    found.delete(id)
    if (row === undefined) wrong.push(`${id} was not started`)
    else if (row.state !== 'succeeded') wrong.push(`${id} is ${row.state}`)
    else if (row.started < tick) wrong.push(`${id} was started at ${new Date(row.started).toISOString()}`)
  }
  return [...wrong, ...[...found.keys()].map((id) => `${id} has no tick`)]
}

/** Each run has a tick of its own, and began neither before it nor too late; most ticks have one. */
function judgeSome(name: string, rows: readonly Row[], ticks: readonly number[], lateMs: number): string[] {
  const ids = new Map(ticks.map((tick) => [`schedule:${name}:${new Date(tick).toISOString()}`, tick]))
  const found = rows.filter(({ id }) => id.startsWith(`schedule:${name}:`))
  const wrong = found.flatMap(({ id, started }) => {
    const tick = ids.get(id)
    if (tick === undefined) return [`${id} has no tick`]
    return started < tick || started > tick + lateMs ? [`${id} began ${started - tick} ms after its tick`] : []
  })
  return found.length > ticks.length / 4 ? wrong : [...wrong, `${name} has only ${found.length} runs`]
}

function countLive({ look }: ReturnType<typeof createSimulatedDatabase>, name: string): number {
  const text = `select count(*) as count from onceonly_runs where ended_at is null
    and id >= 'schedule:${name}:' and id < 'schedule:${name};'`
  return (look(text)[0] as { readonly count: number }).count
}

function halfHours(until: number): number[] {
  const first = Math.ceil(START_MS / EVERY_MS) * EVERY_MS
  return Array.from({ length: Math.floor((until - first) / EVERY_MS) + 1 }, (_, index) => first + index * EVERY_MS)
}

/** 2:30 in Berlin; 3:00 in the night in which there is no such time. */
function nights(until: number, days: number): number[] {
  const before = [27, 28, 29, 30].map((day) => Date.UTC(2030, 2, day, 1, 30))
  const change = Date.UTC(2030, 2, 31, 1)
  const after = Array.from({ length: days }, (_, night) => Date.UTC(2030, 3, 1 + night, 0, 30))
  return [...before, change, ...after].filter((at) => at <= until)
}
