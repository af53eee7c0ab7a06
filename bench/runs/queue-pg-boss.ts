import { drive } from '../harness/load.ts'
import { loadPeer } from '../harness/peers.ts'
import { POOL_CLIENTS, serverCpu } from '../harness/postgres.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import { createEnds, JOBS_WARM_UP, type PostgresJobsTask } from './queue-task.ts'

/** What this side uses of pg-boss. */
interface PgBoss {
  start(): Promise<unknown>
  createQueue(name: string, options: { readonly notify: boolean }): Promise<void>
  send(name: string, data: object): Promise<string | null>
  work(name: string, options: object, handler: (jobs: readonly Job[]) => Promise<void>): Promise<string>
  stop(options: { readonly graceful: boolean }): Promise<void>
  on(event: 'error', listener: (error: Error) => void): void
}

interface Job {
  readonly id: string
  readonly data: { readonly number: number }
}

/** Woken by LISTEN/NOTIFY; it also polls, as often as it can. */
const WORK = { notifyPollingIntervalSeconds: 0.5, pollingIntervalSeconds: 0.5 }
const WORKERS = 8

const task = readTask<PostgresJobsTask>()
type New = new (options: object) => PgBoss
const { PgBoss: Boss } = await loadPeer<{ readonly PgBoss: New }>('pg-boss')
const boss = new Boss({ connectionString: task.url, max: POOL_CLIENTS, useListenNotify: true, supervise: false })
boss.on('error', (error) => console.error(error))
await boss.start()
await boss.createQueue('jobs', { notify: true })
const ends = createEnds()
let acts = 0
const workers = Math.min(task.callers, WORKERS)
const batchSize = Math.ceil(task.callers / workers)
// It says nothing when an end is recorded, so its requests end a write earlier than those of the others.
await boss.work('jobs', { ...WORK, localConcurrency: workers, batchSize }, async (jobs) => {
  acts += jobs.length
  for (const { data } of jobs) ends.ended(String(data.number))
})

async function request(number: number): Promise<void> {
  const ended = ends.of(String(number))
  await boss.send('jobs', { number })
  await ended
}

const { requests, figures } = await drive({ ...task, ...JOBS_WARM_UP, serverCpuMs: serverCpu(task), request })
mustEqual('acts', acts, requests)
await boss.stop({ graceful: false })
answer(figures)
process.exit(0)
