import type { Bench } from './harness/bench.ts'
import { runBench } from './harness/bench.ts'
import type { Goal, Wanted } from './harness/compare.ts'
import { byTurns } from './harness/compare.ts'
import type { Figures } from './harness/figures.ts'
import { describeDisk } from './harness/machine.ts'
import { installPeers, peerVersion } from './harness/peers.ts'
import type { PostgresServer } from './harness/postgres.ts'
import { POOL_CLIENTS, withPostgres } from './harness/postgres.ts'
import type { RedisServer } from './harness/redis.ts'
import { withRedis } from './harness/redis.ts'
import type { JobsTask } from './runs/queue-task.ts'
import type { RunsTask, StoredRunsTask } from './runs/task.ts'
import { STEPS } from './runs/task.ts'

/**
 * Runs of ten steps that do nothing ÷ the same with DBOS Transact, on one PostgreSQL server and as durable, and ÷ Restate,
 * which brings a server with a log of its own, syncs it, and calls its steps over HTTP. Steps a second are ten times the
 * runs. Then jobs that do nothing, from `enqueue` to their recorded end, ÷ the same with queues.
 */
const PAIRS = 9

const ours = import.meta.resolve('./runs/ours.ts')
const dbos = import.meta.resolve('./runs/dbos.ts')
const restate = import.meta.resolve('./runs/restate.ts')

/** Each of these has a round of every peer for each of ours. */
const JOB_PAIRS = 5
const ourJobs = import.meta.resolve('./runs/queue-ours.ts')
const storedPeers = [
  ['DBOS Transact', import.meta.resolve('./runs/queue-dbos.ts')],
  ['pg-boss', import.meta.resolve('./runs/queue-pg-boss.ts')],
  ['Graphile Worker', import.meta.resolve('./runs/queue-graphile.ts')],
] as const
const bullmq = import.meta.resolve('./runs/queue-bullmq.ts')

await runBench('runs', async (bench) => {
  await installPeers(bench.progress)
  bench.note(describeDisk())
  bench.note(
    `${peerVersion('@dbos-inc/dbos-sdk')}; a request is a run of ${STEPS} steps; pool of ${POOL_CLIENTS} on both sides`,
  )
  bench.note(
    `${peerVersion('pg-boss')}, ${peerVersion('graphile-worker')}; ${peerVersion('bullmq')} on Redis, fsync always`,
  )
  bench.note(`${peerVersion('@restatedev/restate-server')}, ${peerVersion('@restatedev/restate-sdk')} over HTTP/2`)
  await withPostgres(bench, async (server) => {
    await againstDbos(bench, server, 1, 5)
    await againstDbos(bench, server, 16, 15)
    await againstDbos(bench, server, 256, 15)
    await againstRestate(bench, server, 1, 4)
    await againstRestate(bench, server, 16, 4)
    await once(bench, server)
    await withRedis(bench, async (redis) => {
      for (const callers of [1, 16, 256]) await enqueued(bench, server, redis, callers)
    })
  })
})

function timesOf({ options }: Bench) {
  return options.quick ? { warmUpMs: 300, measureMs: 1_000 } : { warmUpMs: 1_000, measureMs: 4_000 }
}

async function againstDbos(bench: Bench, server: PostgresServer, callers: number, atLeast: number): Promise<void> {
  const task = { ...timesOf(bench), callers, semantics: 'keyed' } as const
  await bench.compare({
    name: `${callers} at once`,
    pairs: PAIRS,
    ours: 'createEngine',
    other: 'DBOS Transact',
    measure: byTurns(
      () => stored(bench, server, ours, task),
      () => stored(bench, server, dbos, task),
    ),
    wanted: wanted('ratio', { atLeast }),
  })
}

async function againstRestate(bench: Bench, server: PostgresServer, callers: number, atLeast: number): Promise<void> {
  const task = { ...timesOf(bench), callers, semantics: 'keyed' } as const
  await bench.compare({
    name: `${callers} at once, Restate`,
    pairs: PAIRS,
    ours: 'createEngine',
    other: 'Restate',
    measure: byTurns(
      () => stored(bench, server, ours, task),
      () => bench.side({ program: restate, task: task satisfies RunsTask }),
    ),
    wanted: wanted('ratio', { atLeast }),
  })
}

/** A request is one job: it is enqueued, taken, performed, and its end is recorded. */
async function enqueued(bench: Bench, server: PostgresServer, redis: RedisServer, callers: number): Promise<void> {
  const task: JobsTask = { ...timesOf(bench), callers }
  const onPostgres = (program: string) =>
    server.withDatabase((place) => bench.side({ program, task: { ...task, ...place } }))
  const onRedis = (program: string) =>
    redis.withEmpty('always', (place) => bench.side({ program, task: { ...task, ...place } }))
  const against = (other: string, measure: () => Promise<Figures>) =>
    bench.compare({
      name: `${callers} at once, enqueue to end, ${other}`,
      pairs: JOB_PAIRS,
      ours: 'enqueue',
      other,
      measure: byTurns(() => onPostgres(ourJobs), measure),
      wanted: wanted('ratio'),
    })
  for (const [name, program] of storedPeers) await against(name, () => onPostgres(program))
  await against('BullMQ', () => onRedis(bullmq))
}

/** A round of a side that has a database of its own. */
function stored(bench: Bench, server: PostgresServer, program: string, task: RunsTask): Promise<Figures> {
  return server.withDatabase((place) => bench.side({ program, task: { ...task, ...place } satisfies StoredRunsTask }))
}

/** The intent comes first, with the record of the step before it; nothing to compare it with. */
async function once(bench: Bench, server: PostgresServer): Promise<void> {
  const task = { ...timesOf(bench), callers: 16, semantics: 'once' } as const
  await bench.compare({
    name: '16 at once, `once` steps',
    pairs: PAIRS,
    ours: 'createEngine',
    other: null,
    measure: async () => ({ ours: await stored(bench, server, ours, task), other: null }),
    wanted: wanted('ours'),
  })
}

function wanted(of: Wanted['of'], goal?: Goal): Wanted[] {
  return [
    { figure: 'requestsPerS', label: 'runs/s', of, ...(goal === undefined ? {} : { goal }) },
    { figure: 'p50Ms', label: 'median ms of a run', of },
    { figure: 'p99Ms', label: 'p99 ms of a run', of },
    { figure: 'cpuUs', label: 'CPU µs of a run', of },
    { figure: 'serverCpuUs', label: 'server CPU µs of a run', of },
  ]
}
