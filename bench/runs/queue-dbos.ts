import { drive } from '../harness/load.ts'
import { loadPeer } from '../harness/peers.ts'
import { POOL_CLIENTS, serverCpu } from '../harness/postgres.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import { JOBS_WARM_UP, type PostgresJobsTask } from './queue-task.ts'

/** What this side uses of DBOS Transact. */
interface Dbos {
  setConfig(config: Readonly<Record<string, unknown>>): void
  registerWorkflow<I, O>(body: (input: I) => Promise<O>, config: { readonly name: string }): (input: I) => Promise<O>
  registerQueue(name: string, options: { readonly minPollingIntervalMs: number }): Promise<unknown>
  runStep<T>(act: () => Promise<T>, config: { readonly name: string }): Promise<T>
  startWorkflow<I, O>(
    workflow: (input: I) => Promise<O>,
    params: { readonly workflowID: string; readonly queueName: string },
  ): (input: I) => Promise<{ getResult(): Promise<O> }>
  launch(): Promise<void>
  shutdown(): Promise<void>
}

/** Its queues are polled, every second unless this is set; as often as still helps. */
const POLL_MS = 5

const task = readTask<PostgresJobsTask>()
const { DBOS } = await loadPeer<{ readonly DBOS: Dbos }>('@dbos-inc/dbos-sdk')
const log = { systemDatabasePoolSize: POOL_CLIENTS, logLevel: 'error', runAdminServer: false }
DBOS.setConfig({ name: 'bench', systemDatabaseUrl: task.url, ...log })
let acts = 0
const noop = DBOS.registerWorkflow(async (_number: number) => DBOS.runStep(async () => ++acts, { name: 'noop' }), {
  name: 'noop',
})
await DBOS.launch()
await DBOS.registerQueue('jobs', { minPollingIntervalMs: POLL_MS })

async function request(number: number): Promise<unknown> {
  const handle = await DBOS.startWorkflow(noop, { workflowID: `job ${number}`, queueName: 'jobs' })(number)
  return await handle.getResult()
}

const { requests, figures } = await drive({ ...task, ...JOBS_WARM_UP, serverCpuMs: serverCpu(task), request })
mustEqual('acts', acts, requests)
await DBOS.shutdown()
answer(figures)
// It leaves timers behind.
process.exit(0)
