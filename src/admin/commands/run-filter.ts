import type { Attributes, RunState } from '../../runs/entry.ts'
import type { RunQuery } from '../../runs/list.ts'
import type { RunOperator } from '../../runs/operate.ts'
import { json, oneOf, optional, text, type Values } from './argument.ts'
import { type Context, given } from './command.ts'
import { sinceTime } from './paging.ts'

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
}

/** The filters that were given, apart from the time. */
export function filtersOf(args: Omit<Values<typeof runFilter>, 'since'>): RunQuery {
  const { state, definition, queue, parent, scope } = args
  // What they may be is checked where they are looked for.
  const attributes = args.attributes as Attributes | undefined
  return given({ state, definition, queue, parent, attributes, scope })
}

/** Commands are run only where what they need is there. */
export function runsOf({ admin }: Pick<Context, 'admin'>): RunOperator {
  return admin.runs as RunOperator
}
