import type { Card, Explanation, Standing, Status } from 'onceonly/admin'
import { ask } from '../parts/ask.ts'

/** Everything that the console asks is below this address. Times are milliseconds, by the clock of the store. */
export const api = '/api/console'

export type { Card, Standing, Status }

/** A record, and what retries are answered with: that is for operators. */
export interface RecordDetail extends Explanation {
  readonly stored: string | null
  readonly storedHidden: boolean
}

export interface Rates {
  readonly at: number
  readonly perSecond: Readonly<Record<string, number>>
  readonly latencyMs: {
    readonly request: number | null
    readonly claim: number | null
    readonly effect: number | null
  }
  /** Null while the store cannot be asked. */
  readonly standing: Standing | null
}

export interface Action {
  readonly action: string
  readonly [member: string]: unknown
}

/** What an operator does; the server writes down who and when. */
export async function act<T = unknown>(action: Action): Promise<T> {
  const { result } = await ask<{ readonly result: T }>(`${api}/actions`, { method: 'POST', body: action })
  return result
}

/** The address of a question, with the parts of its query that were given. */
export function question(path: string, query: Readonly<Record<string, string>> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== '')
  return given.length === 0 ? api + path : `${api}${path}?${new URLSearchParams(given).toString()}`
}
