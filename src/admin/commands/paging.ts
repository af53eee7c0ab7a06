import { limits } from '../../ledger/core/limits.ts'
import { optional, type Since, since, text, whole, withDefault } from './argument.ts'
import type { Context } from './command.ts'

const ROWS = 100

export const limit = withDefault(whole('how many rows at the most', { least: 1, most: limits.pageRows }), ROWS)

export const paging = { limit, cursor: optional(text('where the page before ended')) }

export const sinceTime = optional(since('only since then: a time ago such as 2h or 7d'))

/** By the store's clock; undefined where no time was given. */
export async function timeOf({ admin }: Context, given: Since | undefined): Promise<number | undefined> {
  if (given === undefined) return undefined
  return 'at' in given ? given.at : (await admin.now()) - given.agoMs
}
