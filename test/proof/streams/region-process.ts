import { jetstream } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { postgresStore } from 'onceonly/postgres'
import { createNatsExchange, createSqlOrderLog, createSqlRoomLog, createStreamRegion } from 'onceonly/stream/server'
import { Pool } from 'pg'
import { serve } from '../../support/streams/serve.ts'
import { quick } from '../../support/streams/world.ts'

/** What a test starts, and kills: one region as a process of its own, on PostgreSQL and NATS. */
export interface RegionTask {
  readonly region: string
  readonly regions: readonly string[]
  readonly port: number
  readonly databaseUrl: string
  readonly natsUrl: string
  readonly namespace: string
}

const task = JSON.parse(process.argv[2] ?? '') as RegionTask
const pool = new Pool({ connectionString: task.databaseUrl, max: 6 })
pool.on('error', () => {})
const store = postgresStore(pool)
const connection = await connect({ servers: task.natsUrl, maxReconnectAttempts: -1, reconnectTimeWait: 100 })
const exchange = await createNatsExchange({
  connection,
  jetstream: jetstream(connection),
  region: task.region,
  namespace: task.namespace,
})
const region = createStreamRegion({
  region: task.region,
  log: createSqlRoomLog({ store, region: task.region }),
  order: createSqlOrderLog({ store }),
  exchange,
  peers: task.regions.filter((peer) => peer !== task.region),
  bounds: { ...quick, orderLeaseMs: 3_000, pullRetryCapMs: 500 },
})
await serve(region, task.port)
console.log('listening')
