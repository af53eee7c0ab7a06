import { type Problem, statusOf } from './http/problem.ts'
import type { Log } from './logs.ts'

/**
 * The line of the access log for an attempt that no route has seen.
 * @param method null for what was not even a request
 */
export function logUnrouted(log: Pick<Log, 'info'>, method: string | null, problem: Problem): void {
  log.info({
    event: 'http.access',
    method,
    route: null,
    status: statusOf(problem),
    durationMs: null,
    workspace: null,
    caller: null,
    operation: null,
    keyHash: null,
    record: null,
    replayed: false,
    decision: null,
    problem: problem.name,
  })
}
