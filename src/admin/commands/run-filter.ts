import type { RunState } from '../../runs/entry.ts'
import type { RunOperator } from '../../runs/operate.ts'
import { oneOf, optional, text } from './argument.ts'
import type { Context } from './command.ts'
import { sinceTime } from './paging.ts'

const states: readonly RunState[] = ['queued', 'running', 'sleeping', 'unknown', 'succeeded', 'failed', 'cancelled']

/** Which runs. */
export const runFilter = {
  state: optional(oneOf('only in this state', states)),
  definition: optional(text('only of this definition')),
  queue: optional(text('only runs that were enqueued there')),
  scope: optional(text('only runs whose ids have this before their first slash')),
  since: sinceTime,
}

/** Commands are run only where what they need is there. */
export function runsOf({ admin }: Pick<Context, 'admin'>): RunOperator {
  return admin.runs as RunOperator
}
