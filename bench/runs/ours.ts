import { createLedger } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import { createEngine, defineRun } from 'onceonly/run'
import { drive } from '../harness/load.ts'
import { createPool, serverCpu } from '../harness/postgres.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import type { StoredRunsTask } from './task.ts'
import { STEPS, WARM_UP } from './task.ts'

const task = readTask<StoredRunsTask>()
const pool = createPool(task)
const store = postgresStore(pool)
let acts = 0
const noops = defineRun('noops', async (run, number: number) => {
  for (let step = 0; step < STEPS; step++) await run.step('noop', { semantics: task.semantics }, () => ++acts)
  return number
})
const engine = await createEngine({ ledger: createLedger({ store, background: false }), runs: [noops] })

async function request(number: number): Promise<unknown> {
  const handle = await engine.start(noops, { runId: `run ${number}`, input: number })
  return await handle.result()
}

const { requests, figures } = await drive({ ...task, ...WARM_UP, serverCpuMs: serverCpu(task), request })
mustEqual('acts', acts, requests * STEPS)
const { rows } = await pool.query<{ ended: number; steps: number; durability: string }>(
  `SELECT (SELECT count(*)::int FROM onceonly_runs WHERE state = 'succeeded') AS ended,
    (SELECT count(*)::int FROM onceonly_run_steps WHERE state = 'succeeded') AS steps,
    current_setting('synchronous_commit') AS durability`,
)
mustEqual('ended runs', rows[0]?.ended, requests)
mustEqual('recorded steps', rows[0]?.steps, requests * STEPS)
mustEqual('synchronous_commit', rows[0]?.durability, 'on')
await engine.stop()
await store.stop()
await pool.end()
answer(figures)
