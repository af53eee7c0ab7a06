import type { Attributes, RunState } from '../../runs/entry.ts'
import type { RunQuery } from '../../runs/list.ts'
import type { RunOperator } from '../../runs/operate.ts'
import { json, oneOf, optional, text, time, type Values } from './argument.ts'
import { type Context, given } from './command.ts'
import { sinceTime, timeOf } from './paging.ts'

const states: readonly RunState[] = ['queued', 'running', 'sleeping', 'unknown', 'succeeded', 'failed', 'cancelled']

/** Which runs. */
export const runFilter = {
  state: optional(oneOf('only in this state', states)),
  definition: optional(text('only of this definition')),
  queue: optional(text('only runs that were enqueued there')),
  parent: optional(text('only children of this run')),
  attributes: optional(json('only runs with these attributes, as JSON: {"customer":"c-1"}')),
  scope: optional(text('only runs whose ids have this before their first slash')),
  since: sinceTime,
  before: optional(time('only those that began before then: a time ago such as 2h, or a date with its time zone')),
}

/** The filters that were given; times are those of the store's clock. */
export async function filtersOf(context: Context, args: Values<typeof runFilter>): Promise<RunQuery> {
  const { state, definition, queue, parent, scope } = args
  // What they may be is checked where they are looked for.
  const attributes = args.attributes as Attributes | undefined
  const startedFrom = await timeOf(context, args.since)
  const startedBefore = await timeOf(context, args.before)
  return given({ state, definition, queue, parent, attributes, scope, startedFrom, startedBefore })
}

/** Commands are run only where what they need is there. */
export function runsOf({ admin }: Pick<Context, 'admin'>): RunOperator {
  return admin.runs as RunOperator
}
