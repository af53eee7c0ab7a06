import { createLedger, isOnceError, MINUTE } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import { sqliteStore } from 'onceonly/sqlite'
import { Pool } from 'pg'

/** A ledger on PostgreSQL, and one on a file, as a user writes them: exported, without a type of their own. */
export const once = createLedger({ store: postgresStore(new Pool({ max: 4 })) })
export const local = createLedger({ store: sqliteStore('orders.db') })

export const capture = once.operation<{ readonly cents: number }>({
  name: 'payment.capture',
  effect: 'external',
  leaseMs: MINUTE,
})
export const place = once.operation({ name: 'order.place', effect: 'transaction' })
export const shop = once.scope({ tenant: 'acme', caller: 'checkout' })

export async function pay(key: string, cents: number): Promise<string> {
  const who = { tenant: 'acme', caller: 'checkout', key }
  try {
    const { receipt } = await capture.run(who, { cents }, async ({ effectKey, signal }) => {
      signal.throwIfAborted()
      return { receipt: effectKey }
    })
    return receipt
  } catch (error) {
    if (isOnceError(error, 'outcome_unknown')) return error.next
    throw error
  }
}

export async function order(key: string, item: string): Promise<number> {
  return await place.run({ tenant: 'acme', caller: 'checkout', key }, { item }, async ({ tx }) => {
    const rows = await tx.query<{ id: number }>('insert into orders (item) values ($1) returning id', [item])
    return rows[0]?.id ?? 0
  })
}
