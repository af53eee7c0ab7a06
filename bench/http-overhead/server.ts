import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import { createLedger } from 'onceonly'
import { createProtect, onceonly } from 'onceonly/fastify'
import { memoryStore } from 'onceonly/memory'
import { createPrometheusMeter, createTelemetry, type Telemetry } from 'onceonly/telemetry'
import { type Order, receiptOf } from '../harness/orders.ts'
import { createPool } from '../harness/postgres.ts'
import { readTask } from '../harness/program.ts'
import { COUNT_PATH, PATH, type ServerTask } from './task.ts'

/** The same application on both sides. One of them puts the protection in front of the handler. */
const task = readTask<ServerTask>()
const pool = task.place === null ? null : createPool(task.place)
await pool?.query('CREATE TABLE orders (order_id text PRIMARY KEY, request bigint, cents integer NOT NULL)')

const app = Fastify({ forceCloseConnections: true })
const telemetry = task.telemetry === true ? createTelemetry({ meter: createPrometheusMeter() }) : null
const watched = telemetry === null ? {} : { on: telemetry.ledger, around: telemetry.around }
const ledger = task.protected ? createLedger({ store: memoryStore(), ...watched }) : null
if (telemetry !== null) countRequests(telemetry)
/** As the server does it: every answer is counted and timed. */
function countRequests({ request: count }: Telemetry): void {
  app.addHook('onRequest', (_request, reply, done) => {
    const begin = performance.now()
    reply.raw.once('close', () => {
      const outcome = reply.getHeader('idempotent-replayed') === 'true' ? 'dedup_replay' : 'first'
      count({ operation: 'bench.order', outcome, durationMs: performance.now() - begin })
    })
    done()
  })
}

let effects = 0
const place = async (request: FastifyRequest<{ Body: Order }>, reply: FastifyReply) => {
  const order = request.body
  effects++
  // Without a protection a retry inserts again, so the row's own key is the number of the effect.
  await pool?.query({
    name: 'order',
    text: 'INSERT INTO orders (order_id, request, cents) VALUES ($1, $2, $3)',
    values: [`${order.orderId}/${effects}`, effects, order.cents],
  })
  return reply.code(201).send(receiptOf(order))
}
if (ledger === null) app.post<{ Body: Order }>(PATH, place)
else {
  await app.register(onceonly)
  const protect = createProtect({ ledger, who: () => ({ tenant: 'acme', caller: 'checkout' }) })
  app.post<{ Body: Order }>(PATH, protect({ name: 'bench.order', effect: 'external' }, place))
}

app.post(COUNT_PATH, async () => {
  const rows = await pool?.query<{ rows: number }>('SELECT count(*)::int AS rows FROM orders')
  return { effects, rows: rows?.rows[0]?.rows ?? null }
})

process.once('SIGTERM', () => void stop())
console.log(await app.listen({ host: '127.0.0.1', port: 0 }))

async function stop(): Promise<void> {
  await app.close()
  await ledger?.stop()
  await pool?.end()
}
