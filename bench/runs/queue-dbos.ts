import { drive } from '../harness/load.ts'
import { loadPeer } from '../harness/peers.ts'
import { POOL_CLIENTS, serverCpu } from '../harness/postgres.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import { createEnds, JOBS_WARM_UP, type PostgresJobsTask } from './queue-task.ts'

/** What this side uses of DBOS Transact. */
interface Dbos {
  setConfig(config: Readonly<Record<string, unknown>>): void
  registerWorkflow<I, O>(body: (input: I) => Promise<O>, config: { readonly name: string }): (input: I) => Promise<O>
  registerQueue(name: string, options: { readonly minPollingIntervalMs: number }): Promise<unknown>
  runStep<T>(act: () => Promise<T>, config: { readonly name: string }): Promise<T>
  startWorkflow<I, O>(
    workflow: (input: I) => Promise<O>,
    params: { readonly workflowID: string; readonly queueName: string },
  ): (input: I) => Promise<unknown>
  launch(): Promise<void>
  shutdown(): Promise<void>
}

/** Its queues are polled, every second unless this is set; as often as still helps. */
const POLL_MS = 5

const task = readTask<PostgresJobsTask>()
const { DBOS } = await loadPeer<{ readonly DBOS: Dbos }>('@dbos-inc/dbos-sdk')
const log = { systemDatabasePoolSize: POOL_CLIENTS, logLevel: 'error', runAdminServer: false }
DBOS.setConfig({ name: 'bench', systemDatabaseUrl: task.url, ...log })
const ends = createEnds()
let acts = 0
// Its handles poll for results, every second unless asked otherwise; so its requests end with the body, before that is recorded.
const noop = DBOS.registerWorkflow(
  async (number: number) => {
    const result = await DBOS.runStep(async () => ++acts, { name: 'noop' })
    ends.ended(String(number))
    return result
  },
  { name: 'noop' },
)
await DBOS.launch()
await DBOS.registerQueue('jobs', { minPollingIntervalMs: POLL_MS })

async function request(number: number): Promise<void> {
  const ended = ends.of(String(number))
  await DBOS.startWorkflow(noop, { workflowID: `job ${number}`, queueName: 'jobs' })(number)
  await ended
}

const { requests, figures } = await drive({ ...task, ...JOBS_WARM_UP, serverCpuMs: serverCpu(task), request })
mustEqual('acts', acts, requests)
await DBOS.shutdown()
answer(figures)
// It leaves timers behind.
process.exit(0)
