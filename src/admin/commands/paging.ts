import { limits } from '../../ledger/core/limits.ts'
import { optional, type Since, since as sinceArgument, text, whole, withDefault } from './argument.ts'
import type { Context } from './command.ts'

const ROWS = 100

export const limit = withDefault(whole('how many rows at the most', { least: 1, most: limits.pageRows }), ROWS)

export const paging = { limit, cursor: optional(text('where the page before ended')) }

export const sinceTime = optional(sinceArgument('only since then: a time ago such as 2h or 7d'))

/** By the store's clock; undefined where no time was given. */
export async function timeOf({ admin }: Context, given: Since | undefined): Promise<number | undefined> {
  if (given === undefined) return undefined
  return 'at' in given ? given.at : (await admin.now()) - given.agoMs
}

/** The rows that are not older than the time that was given. */
export async function since<Row>(
  context: Context,
  given: Since | undefined,
  rows: readonly Row[],
  atOf: (row: Row) => number,
): Promise<readonly Row[]> {
  const from = await timeOf(context, given)
  return from === undefined ? rows : rows.filter((row) => atOf(row) >= from)
}
