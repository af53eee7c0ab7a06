import { randomBytes } from 'node:crypto'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { createLedger } from 'onceonly'
import { memoryStore } from 'onceonly/memory'
import { createPrometheusMeter, createTelemetry, type Telemetry } from 'onceonly/telemetry'
import { type Order, receiptOf } from '../harness/orders.ts'
import { createPool } from '../harness/postgres.ts'
import { readTask } from '../harness/program.ts'
import { createApp } from './apps.ts'
import { CREATE, INSERT } from './insert.ts'
import type { ServerTask } from './task.ts'
import { createTransactionApp } from './transaction.ts'

/** The same application on both sides. One of them puts the protection in front of the handler. */
const {
  adapter,
  protected: isProtected,
  telemetry: isWatched = false,
  encrypted = false,
  work,
} = readTask<ServerTask>()
const pool = work.kind === 'empty' ? null : createPool(work.place)
await pool?.query(CREATE)

let effects = 0
/** Without a protection a retry inserts again, so the row's own key is the number of the effect. */
function values({ orderId, cents }: Order): (string | number)[] {
  effects++
  return [`${orderId}/${effects}`, effects, cents]
}

async function count(): Promise<object> {
  const rows = await pool?.query<{ rows: number }>('SELECT count(*)::int AS rows FROM orders')
  return { effects, rows: rows?.rows[0]?.rows ?? null }
}

const app =
  work.kind === 'transaction' && pool !== null
    ? await createTransactionApp({ pool, protected: isProtected, values, count })
    : await inMemory()
const { server } = app
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
process.once('SIGTERM', () => void stop())

async function inMemory(): Promise<{ readonly server: Server; stop(): Promise<void> }> {
  const keys = encrypted ? { encryption: { keys: { k1: randomBytes(32) } } } : {}
  const telemetry = isWatched ? createTelemetry({ meter: createPrometheusMeter() }) : null
  const watched = telemetry === null ? {} : { on: telemetry.ledger, around: telemetry.around }
  const ledger = isProtected ? createLedger({ store: memoryStore(keys), ...watched }) : null
  const created = await createApp(adapter, {
    ledger,
    count,
    place: async (order) => {
      if (pool === null) effects++
      else await pool.query({ ...INSERT, values: values(order) })
      return receiptOf(order)
    },
    ...(telemetry === null ? {} : { prepare: (fastify: FastifyInstance) => countRequests(fastify, telemetry) }),
  })
  return { server: created, stop: async () => await ledger?.stop() }
}

/** As the server does it: every answer is counted and timed. */
function countRequests(fastify: FastifyInstance, { request: counted }: Telemetry): void {
  fastify.addHook('onRequest', (_request, reply, done) => {
    const begin = performance.now()
    reply.raw.once('close', () => {
      const outcome = reply.getHeader('idempotent-replayed') === 'true' ? 'dedup_replay' : 'first'
      counted({ operation: 'bench.order', outcome, durationMs: performance.now() - begin })
    })
    done()
  })
}

async function stop(): Promise<void> {
  server.close()
  server.closeAllConnections()
  await app.stop()
  await pool?.end()
}
