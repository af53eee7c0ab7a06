import { DAY, HOUR, MINUTE, SECOND } from 'onceonly'

/** So many calls within any span of time. */
export interface CallRate {
  readonly limit: number
  readonly perMs: number
}

/** One row of the store for each call of a span: more would make a table of what is a setting. */
const CALLS_MOST = 10_000
const spans = { second: SECOND, minute: MINUTE, hour: HOUR, day: DAY } as const

/** Null for a provider without a limit. */
export function rateOf(text: string): { value: CallRate | null } | { wrong: string } {
  if (text === '') return { value: null }
  const [, calls = '', span = ''] = /^(\d{1,6})\/(second|minute|hour|day)$/.exec(text) ?? []
  const limit = Number(calls)
  return limit >= 1 && limit <= CALLS_MOST
    ? { value: { limit, perMs: spans[span as keyof typeof spans] } }
    : { wrong: `is not a rate such as 10/second, of 1 to ${CALLS_MOST} calls per ${Object.keys(spans).join(', ')}` }
}

export function aboutRate(provider: string): string {
  return `how often ${provider} is called at most, over all processes, as 10/second or 600/minute; empty for no limit`
}
