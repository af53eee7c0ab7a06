import type { Server } from 'node:http'
import Fastify from 'fastify'
import { createLedger } from 'onceonly'
import { createProtect, onceonly } from 'onceonly/fastify'
import { postgresStore } from 'onceonly/postgres'
import type { Pool, PoolClient } from 'pg'
import { type Order, receiptOf } from '../harness/orders.ts'
import { INSERT } from './insert.ts'
import { COUNT_PATH, PATH } from './task.ts'

/** A Fastify route that inserts in a transaction: by hand, or with the record of its key in the same one. */
export interface TransactionApp {
  readonly server: Server
  stop(): Promise<void>
}

export interface TransactionOptions {
  readonly pool: Pool
  readonly protected: boolean
  /** The values of the next row. */
  values(order: Order): (string | number)[]
  count(): Promise<object>
}

export async function createTransactionApp(options: TransactionOptions): Promise<TransactionApp> {
  const { pool, values, count } = options
  const app = Fastify({ forceCloseConnections: true })
  const store = options.protected ? postgresStore(pool) : null
  const ledger = store === null ? null : createLedger({ store })
  if (ledger === null) {
    app.post<{ Body: Order }>(PATH, async (request, reply) => {
      await inTransaction(pool, values(request.body))
      return reply.code(201).send(receiptOf(request.body))
    })
  } else {
    await app.register(onceonly)
    const protect = createProtect({ ledger, who: () => ({ tenant: 'acme', caller: 'checkout' }) })
    app.post<{ Body: Order }>(
      PATH,
      protect({ name: 'bench.order', effect: 'transaction' }, async (request, reply, { tx }) => {
        // A statement with a name is prepared once on each connection, as it is by hand.
        await (tx.client as PoolClient).query({ ...INSERT, values: values(request.body) })
        return reply.code(201).send(receiptOf(request.body))
      }),
    )
  }
  app.post(COUNT_PATH, () => count())
  await app.ready()
  return {
    server: app.server,
    stop: async () => {
      await app.close()
      await ledger?.stop()
      await store?.stop()
    },
  }
}

async function inTransaction(pool: Pool, values: (string | number)[]): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    await client.query({ ...INSERT, values })
    await client.query('COMMIT')
  } finally {
    client.release()
  }
}
