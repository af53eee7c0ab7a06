import type { HistoryPoint, HistoryRange } from 'onceonly/admin'
import { useEffect } from 'preact/hooks'
import { type Asked, useAsk } from '../parts/ask.ts'
import { type AnswerOf, question, type Rates } from './api.ts'

/** `live`: since the page was opened, every two seconds. */
export const ranges = ['live', '1h', '6h', '24h'] as const
export type Range = (typeof ranges)[number]

export const rangeTexts: Readonly<Record<Range, string>> = {
  live: 'Live',
  '1h': '1 hour',
  '6h': '6 hours',
  '24h': '24 hours',
}

export function rangeOf(text: string | null): Range {
  return ranges.find((range) => range === text) ?? '1h'
}

/** The server keeps minutes. */
const lookMs = 30_000

export type History = AnswerOf<'history'>

/** What the server has kept; asked again every half minute. */
export function useHistory(range: HistoryRange): Asked<History> {
  const [asked, again] = useAsk<History>(question('/history', { range }))
  useEffect(() => {
    const timer = setInterval(again, lookMs)
    return () => clearInterval(timer)
  }, [again])
  return asked
}

/** Live ticks in the form of history. */
export function pointOf({ at, perSecond, latencyMs, standing }: Rates): HistoryPoint {
  const outbox = standing?.outbox
  const letters = Object.values(standing?.inboxDeadLetters ?? {}).reduce((sum, count) => sum + count, 0)
  const gauges = {
    pending: outbox?.pending ?? 0,
    lagMs: outbox?.lagMs ?? 0,
    deadLetters: (outbox?.deadLetters ?? 0) + letters,
    unknown: (standing?.unknownWaiting ?? 0) + (standing?.runsUnknown ?? 0),
  }
  return { at, perSecond, latencyMs, gauges }
}
