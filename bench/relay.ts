import { randomBytes } from 'node:crypto'
import { startServers } from '../tools/servers/index.ts'
import type { Bench } from './harness/bench.ts'
import { runBench } from './harness/bench.ts'
import { byTurns, type Goal } from './harness/compare.ts'
import { describeDisk } from './harness/machine.ts'
import type { PostgresServer } from './harness/postgres.ts'
import { withPostgres } from './harness/postgres.ts'
import type { RelayTask } from './relay/task.ts'

/** Outbox rows per second to a broker ÷ a relay that takes one row at a time; ÷ the client library alone, pipelined. */
const PAIRS = 5

const ours = import.meta.resolve('./relay/ours.ts')
const oneByOne = import.meta.resolve('./relay/one-by-one.ts')
const raw = import.meta.resolve('./relay/raw.ts')

await runBench('relay', async (bench) => {
  bench.note(describeDisk())
  await withPostgres(bench, async (server) => {
    for (const broker of ['rabbitmq', 'nats'] as const) {
      await using servers = await startServers([broker], { log: bench.progress })
      const brokerUrl = servers.env[`ONCEONLY_TEST_${broker.toUpperCase()}_URL`]
      if (brokerUrl === undefined) throw new Error(`There is no ${broker} server.`)
      await against(bench, server, { broker, brokerUrl })
    }
  })
})

async function against(
  { options, side, compare }: Bench,
  server: PostgresServer,
  where: Pick<RelayTask, 'broker' | 'brokerUrl'>,
): Promise<void> {
  const { broker } = where
  const measure = (program: string, rows: number) =>
    server.withDatabase((place) => {
      const namespace = `bench-${randomBytes(6).toString('hex')}`
      return side({ program, task: { ...place, ...where, namespace, rows } satisfies RelayTask })
    })
  const rows = options.quick ? 4_000 : 30_000
  const fewRows = options.quick ? 200 : 1_000
  const wanted = (goal: Goal) => [
    { figure: 'rowsPerS', label: 'rows/s', of: 'ratio', goal } as const,
    { figure: 'cpuUs', label: 'CPU µs per row', of: 'ratio' } as const,
  ]
  await compare({
    name: `${broker}, one by one`,
    pairs: PAIRS,
    ours: 'createRelay',
    other: 'select one, publish, confirm, delete',
    measure: byTurns(
      () => measure(ours, rows),
      () => measure(oneByOne, fewRows),
    ),
    wanted: wanted({ atLeast: 15 }),
  })
  await compare({
    name: `${broker}, raw`,
    pairs: PAIRS,
    ours: 'createRelay',
    other: 'the client library alone, pipelined, no database',
    measure: byTurns(
      () => measure(ours, rows),
      () => measure(raw, rows),
    ),
    wanted: wanted({ atLeast: 0.7 }),
  })
}
