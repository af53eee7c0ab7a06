import { randomUUID } from 'node:crypto'
import { MINUTE } from '../../ledger/core/limits.ts'
import type { HistoryStorage } from '../core/history.ts'
import type { Standing } from '../core/standing.ts'
import { since, type Totalling, type Totals, totalsOf } from './totals.ts'

/** Writes down, minute by minute, what this process counts: the charts of every page begin full. */
export interface Recorder {
  /** Writes the minute that is under way. */
  record(): Promise<void>
  stop(): void
}

export interface RecorderOptions {
  readonly meter: Totalling
  readonly storage: HistoryStorage
  standing(): Promise<Standing>
  /** What only this process knows. */
  figures(): Readonly<Record<string, number>>
  onError(error: unknown): void
}

export function createRecorder({ meter, storage, standing, figures, onError }: RecorderOptions): Recorder {
  // A process that starts again is another one: it counts from zero.
  const source = randomUUID()
  let minute = minuteOf(Date.now())
  let before = totalsOf(meter)
  let gauges: Readonly<Record<string, number>> = {}

  async function record(): Promise<void> {
    const totals = totalsOf(meter)
    const line = { at: minute, ...since(before, totals) }
    const current = minuteOf(Date.now())
    if (current !== minute) {
      minute = current
      before = totals
    }
    // An idle server asks and writes nothing, unless something waits in its store.
    const own = figures()
    if (isQuiet(line) && [gauges, own].every((some) => Object.values(some).every((value) => value === 0))) return
    try {
      gauges = { ...gaugesOf(await standing()), ...own }
      await storage.put(source, { ...line, gauges })
    } catch (error) {
      // A gap in a chart is no reason to refuse the rest of it.
      onError(error)
    }
  }

  const timer = setInterval(() => void record(), MINUTE)
  timer.unref()
  return { record, stop: () => clearInterval(timer) }
}

function minuteOf(ms: number): number {
  return Math.floor(ms / MINUTE) * MINUTE
}

function isQuiet({ counts, latencies }: Totals): boolean {
  return (
    Object.values(counts).every((value) => value === 0) && Object.values(latencies).every(({ count }) => count === 0)
  )
}

/** What can pile up. */
function gaugesOf(standing: Standing): Readonly<Record<string, number>> {
  const {
    staleLeases,
    unknownWaiting,
    outbox,
    inboxDeadLetters = {},
    runsStuck = 0,
    runsUnknown = 0,
    queues = {},
  } = standing
  const letters = Object.values(inboxDeadLetters).reduce((sum, count) => sum + count, 0)
  return {
    pending: outbox?.pending ?? 0,
    lagMs: outbox?.lagMs ?? 0,
    deadLetters: (outbox?.deadLetters ?? 0) + letters,
    unknown: unknownWaiting + runsUnknown,
    staleLeases,
    runsStuck,
    queued: Object.values(queues).reduce((sum, { waiting, blocked }) => sum + waiting + blocked, 0),
  }
}
