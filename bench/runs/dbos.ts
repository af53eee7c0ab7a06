import { drive } from '../harness/load.ts'
import { loadPeer } from '../harness/peers.ts'
import { createPool, POOL_CLIENTS, serverCpu } from '../harness/postgres.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import type { StoredRunsTask } from './task.ts'
import { STEPS, WARM_UP } from './task.ts'

/** What this side uses of DBOS Transact. */
interface Dbos {
  setConfig(config: Readonly<Record<string, unknown>>): void
  registerWorkflow<I, O>(body: (input: I) => Promise<O>, config: { readonly name: string }): (input: I) => Promise<O>
  runStep<T>(act: () => Promise<T>, config: { readonly name: string }): Promise<T>
  startWorkflow<I, O>(
    workflow: (input: I) => Promise<O>,
    params: { readonly workflowID: string },
  ): (input: I) => Promise<{ getResult(): Promise<O> }>
  launch(): Promise<void>
  shutdown(): Promise<void>
}

const task = readTask<StoredRunsTask>()
const { DBOS } = await loadPeer<{ readonly DBOS: Dbos }>('@dbos-inc/dbos-sdk')
const log = { systemDatabasePoolSize: POOL_CLIENTS, logLevel: 'error', runAdminServer: false }
DBOS.setConfig({ name: 'bench', systemDatabaseUrl: task.url, ...log })
let acts = 0
const noops = DBOS.registerWorkflow(
  async (number: number) => {
    for (let step = 0; step < STEPS; step++) await DBOS.runStep(async () => ++acts, { name: 'noop' })
    return number
  },
  { name: 'noops' },
)
await DBOS.launch()

async function request(number: number): Promise<unknown> {
  const handle = await DBOS.startWorkflow(noops, { workflowID: `run ${number}` })(number)
  return await handle.getResult()
}

const { requests, figures } = await drive({ ...task, ...WARM_UP, serverCpuMs: serverCpu(task), request })
mustEqual('acts', acts, requests * STEPS)
const pool = createPool(task)
const { rows } = await pool.query<{ steps: number; durability: string }>(
  `SELECT (SELECT count(*)::int FROM dbos.operation_outputs) AS steps, current_setting('synchronous_commit') AS durability`,
)
mustEqual('recorded steps', rows[0]?.steps, requests * STEPS)
mustEqual('synchronous_commit', rows[0]?.durability, 'on')
await pool.end()
await DBOS.shutdown()
answer(figures)
// It leaves timers behind.
process.exit(0)
