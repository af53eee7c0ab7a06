import type { Problem } from './http/problem.ts'
import type { Log } from './logs.ts'

interface Unrouted extends Pick<Problem, 'status' | 'name'> {
  /** Null for what was not even a request. */
  readonly method: string | null
}

/** The line of the access log for an attempt that no route has seen. */
export function logUnrouted(log: Pick<Log, 'info'>, { method, status, name }: Unrouted): void {
  log.info({
    event: 'http.access',
    method,
    route: null,
    status,
    durationMs: null,
    workspace: null,
    caller: null,
    operation: null,
    keyHash: null,
    replayed: false,
    decision: null,
    problem: name,
  })
}
