import { Cron } from 'croner'
import { OnceError } from '../ledger/core/errors.ts'
import { checkOptions, kindOf } from '../ledger/core/option-names.ts'
import type { RunDefinition } from './definition.ts'
import { checkName } from './names.ts'
import type { Queue } from './queue.ts'

export interface RunScheduleOptions<I> {
  /** What is started at every tick. */
  readonly run: RunDefinition<I, unknown>
  /** The input of its runs: plain data, or what makes it of the time of the tick. */
  readonly input: I | ((tick: Date) => I)
  /** When: five fields, `0 3 * * *` for every night at three; six where the first are seconds. */
  readonly cron: string
  /** Where it is that time of day, as `Europe/Berlin`. @default 'UTC' */
  readonly timezone?: string
  /**
   * At a tick before the run of the last one has ended: leave the tick out, start when that run has ended, or cancel that
   * run.
   * @default 'skip'
   */
  readonly overlap?: Overlap
  /**
   * Of ticks that passed while no process was there: start the last one, all of them one after the other, or none.
   * @default 'last'
   */
  readonly catchUp?: CatchUp
  /** The queue that lets its runs begin: what defineQueue returned, or its name. @default none, they begin at once */
  readonly queue?: Queue | string
}

export type Overlap = 'skip' | 'queue' | 'cancel'
export type CatchUp = 'last' | 'all' | 'none'

/** Finds the first tick after a time, both in milliseconds; null when there is none any more. */
export type NextAfter = (ms: number) => number | null

/** Starts a run at every tick: one, whatever the number of processes. */
export interface Schedule {
  readonly name: string
  readonly run: RunDefinition
  readonly cron: string
  readonly timezone: string
  readonly overlap: Overlap
  readonly catchUp: CatchUp
  /** The name of its queue; null for one whose runs begin at once. */
  readonly queue: string | null
  /** The input of the run of a tick. */
  inputAt(tick: Date): unknown
  readonly nextAfter: NextAfter
}

const overlaps: Readonly<Record<Overlap, true>> = { skip: true, queue: true, cancel: true }
const catchUps: Readonly<Record<CatchUp, true>> = { last: true, all: true, none: true }

/**
 * Declares a schedule; give it to `createEngine`, with the definition of its run.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createEngine, defineRun, schedule } from 'onceonly/run'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const report = defineRun('report', async (run, day: string) => run.step('send', () => `report of ${day}`))
 * const nightly = schedule('nightly', {
 *   run: report,
 *   input: (tick) => tick.toISOString().slice(0, 10),
 *   cron: '0 3 * * *',
 *   timezone: 'Europe/Berlin',
 * })
 * const once = createLedger({ store: sqliteStore('runs.db') })
 * await createEngine({ ledger: once, runs: [report], schedules: [nightly] })
 * ```
 */
export function schedule<I>(name: string, options: RunScheduleOptions<I>): Schedule {
  checkName('schedule', name)
  checkOptions('schedule', options, {
    run: true,
    input: true,
    cron: true,
    timezone: true,
    overlap: true,
    catchUp: true,
    queue: true,
  })
  const { run, input, cron, timezone = 'UTC', overlap = 'skip', catchUp = 'last', queue = null } = options
  if (typeof run?.body !== 'function') {
    throw bad(name, `needs a \`run\`: what defineRun returned, not ${kindOf(run)}`)
  }
  checkWord(name, 'overlap', overlap, overlaps)
  checkWord(name, 'catchUp', catchUp, catchUps)
  const times = timesOf(name, cron, timezone)
  return {
    name,
    run: run as RunDefinition<unknown, unknown>,
    cron,
    timezone,
    overlap,
    catchUp,
    queue: typeof queue === 'string' ? queue : (queue?.name ?? null),
    inputAt: (tick) => (typeof input === 'function' ? (input as (tick: Date) => I)(tick) : input),
    nextAfter: times,
  }
}

export function createTimes(cron: string, timezone: string): NextAfter {
  // Without a callback nothing is started: it only computes times.
  const times = new Cron(cron, { timezone, mode: '5-or-6-parts', paused: true })
  return (ms) => times.nextRun(new Date(ms))?.getTime() ?? null
}

function timesOf(name: string, cron: unknown, timezone: unknown): NextAfter {
  if (typeof cron !== 'string') throw bad(name, `needs a \`cron\` as text, as '0 3 * * *', not ${kindOf(cron)}`)
  if (typeof timezone !== 'string') throw bad(name, `needs its \`timezone\` as text, not ${kindOf(timezone)}`)
  try {
    const times = createTimes(cron, timezone)
    if (times(Date.now()) === null) throw new Error('it names no time that will come')
    return times
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw bad(name, `cannot follow the cron ${JSON.stringify(cron)} in ${JSON.stringify(timezone)}: ${reason}`, cause)
  }
}

function checkWord(name: string, option: string, given: unknown, known: Readonly<Record<string, true>>): void {
  if (typeof given === 'string' && Object.hasOwn(known, given)) return
  const words = Object.keys(known).map((word) => `'${word}'`)
  throw bad(name, `has the ${option} ${JSON.stringify(given) ?? String(given)}: give ${words.join(', ')}`)
}

function bad(name: string, what: string, cause?: unknown): OnceError {
  return new OnceError('bad_option', `The schedule ${name} ${what}.`, { cause })
}
