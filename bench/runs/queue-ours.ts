import { createLedger } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import { createEngine, defineQueue, defineRun } from 'onceonly/run'
import { drive } from '../harness/load.ts'
import { createPool, serverCpu } from '../harness/postgres.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import { JOBS_WARM_UP, type PostgresJobsTask } from './queue-task.ts'

const task = readTask<PostgresJobsTask>()
const pool = createPool(task)
const store = postgresStore(pool)
let acts = 0
const noop = defineRun('noop', async (run, _number: number) => run.step('noop', () => ++acts))
const jobs = defineQueue('jobs')
const engine = await createEngine({
  ledger: createLedger({ store, background: false }),
  runs: [noop],
  queues: [jobs],
  concurrency: Math.max(task.callers, 8),
})

async function request(number: number): Promise<unknown> {
  const handle = await engine.enqueue(noop, { queue: jobs, runId: `job ${number}`, input: number })
  return await handle.result()
}

const { requests, figures } = await drive({ ...task, ...JOBS_WARM_UP, serverCpuMs: serverCpu(task), request })
mustEqual('acts', acts, requests)
const { rows } = await pool.query<{ ended: number; durability: string }>(
  `SELECT (SELECT count(*)::int FROM onceonly_runs WHERE state = 'succeeded' AND queue = 'jobs') AS ended,
    current_setting('synchronous_commit') AS durability`,
)
mustEqual('ended runs', rows[0]?.ended, requests)
mustEqual('synchronous_commit', rows[0]?.durability, 'on')
await engine.stop()
await store.stop()
await pool.end()
answer(figures)
