import type { Load } from '../harness/load.ts'
import type { PostgresPlace } from '../harness/postgres.ts'
import type { RedisPlace } from '../harness/redis.ts'

/** A request is a job that does nothing: it is enqueued, taken, performed, and its end is recorded. */
export interface JobsTask extends Pick<Load, 'callers' | 'warmUpMs' | 'measureMs'> {}

/** Of a side that keeps its jobs in PostgreSQL. */
export interface PostgresJobsTask extends JobsTask, PostgresPlace {}

/** Of a side that keeps its jobs in Redis. */
export interface RedisJobsTask extends JobsTask, RedisPlace {}

/** Compiles the code of all sides before anything is measured. */
export const JOBS_WARM_UP = { warmUpRequests: 200, warmUpCallers: 8 }

/** Lets each caller wait for the end of its own job. */
export function createEnds() {
  const waiting = new Map<string, () => void>()
  return {
    of: (id: string) => new Promise<void>((resolve) => waiting.set(id, resolve)),
    ended(id: string): void {
      waiting.get(id)?.()
      waiting.delete(id)
    },
  }
}
