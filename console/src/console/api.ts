import type { Card, HistoryPoint, Standing, Status } from 'onceonly/admin'
import type { AnswerOf, CommandName } from 'onceonly/admin/commands'
import { ask } from '../parts/ask.ts'

/** The address of the console's API. Times are milliseconds, by the clock of the store. */
export const api = '/api/console'

/** `AnswerOf`: what a command answers; the table of commands is on the server. */
export type { AnswerOf, Card, Standing, Status }

export interface Rates {
  readonly at: number
  readonly perSecond: Readonly<Record<string, number>>
  readonly latencyMs: HistoryPoint['latencyMs']
  /** Null while the store cannot be asked. */
  readonly standing: Standing | null
}

export interface Action {
  readonly action: CommandName
  readonly [member: string]: unknown
}

/** Runs an action; the server writes it to the audit. */
export async function act<T = unknown>(action: Action): Promise<T> {
  const { result } = await ask<{ readonly result: T }>(`${api}/actions`, { method: 'POST', body: action })
  return result
}

/** The address of a command that reads, with the given parts of its query. */
export function question(path: string, query: Readonly<Record<string, string>> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== '')
  return given.length === 0 ? api + path : `${api}${path}?${new URLSearchParams(given).toString()}`
}
