import type { Pool, PoolClient } from 'pg'
import { orderOf, receiptOf } from '../harness/orders.ts'
import { mustEqual } from '../harness/program.ts'

/** The one key that every caller asks for. */
export const HOT = 7

/**
 * A request arrives from the network, so each begins in a turn of the event loop of its own. Without it answers from
 * memory would follow each other without ever letting a timer or a socket have its turn, which no server does.
 */
export function arrival(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}

export function checkReceipt(receipt: unknown): void {
  const { receipt: text, cents } = receiptOf(orderOf(HOT))
  const given = receipt as { receipt: unknown; cents: unknown }
  mustEqual('the receipt', given.receipt, text)
  mustEqual('the amount', given.cents, cents)
}

/** Counts the statements of all of the pool's clients. */
export function countStatements(pool: Pool): () => number {
  let statements = 0
  pool.on('connect', (client: PoolClient) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown
    const counting = (...args: unknown[]) => {
      statements++
      return query(...args)
    }
    client.query = counting as PoolClient['query']
  })
  return () => statements
}
