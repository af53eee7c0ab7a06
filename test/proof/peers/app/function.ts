import { createLedger } from 'onceonly'
import { postgresStore } from 'onceonly/postgres'
import type { Pool } from 'pg'

interface OrderEvent {
  readonly user: string
  readonly key: string
  readonly item: string
}

export function createHandler(pool: Pool) {
  const once = createLedger({ store: postgresStore(pool) })
  const place = once.operation<OrderEvent>({ name: 'order.place', effect: 'transaction' })
  return (event: OrderEvent) =>
    place.run({ tenant: 'acme', caller: event.user, key: event.key }, event, async ({ tx }) => {
      const [order] = await tx.query('insert into orders (item) values (?) returning id', [event.item])
      return order
    })
}
