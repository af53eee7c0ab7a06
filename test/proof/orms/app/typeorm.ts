import { createLedger } from 'onceonly'
import { type PostgresStore } from 'onceonly/postgres'
import { typeorm } from 'onceonly/typeorm'
import {
  DataSource,
  type EntityManager,
  EntitySchema,
  type EntitySubscriberInterface,
  EventSubscriber,
  type TransactionCommitEvent,
} from 'typeorm'
import { row, sameType } from './row.ts'

interface Order {
  name: string
}
const orders = new EntitySchema<Order>({
  name: 'Order',
  tableName: 'orders',
  columns: { name: { type: 'text', primary: true } },
})

class Listening implements EntitySubscriberInterface {
  seen = 0
  beforeQuery() {
    this.seen += 1
  }
  async beforeTransactionCommit({ queryRunner }: TransactionCommitEvent) {
    this.seen += 1
    if (!hides) return
    hides = false
    await queryRunner.query('SELECT 1 / 0').catch(() => {})
  }
}

// A decorator by hand: the sources are run without a compiler.
EventSubscriber()(Listening)

/** The next commit comes after a statement that failed unseen. */
let hides = false

export const typeormRows = [
  row('TypeORM with a subscriber', async (url, { max }) => {
    const source = await new DataSource({
      type: 'postgres',
      url,
      poolSize: max,
      entities: [orders],
      subscribers: [Listening],
    }).initialize()
    return {
      transactions: typeorm(source),
      insert: async (tx: EntityManager, name) => {
        await tx.insert(orders, { name })
      },
      transaction: (work) => source.transaction(work),
      nested: (tx, work) => tx.transaction(work),
      raw: (tx, text) => tx.query(text),
      close: () => source.destroy(),
      failBeforeCommit: () => void (hides = true),
    }
  }),
]

/** Checked by the compiler only. */
export function types(source: DataSource, store: PostgresStore): void {
  const once = createLedger({ store, transactions: typeorm(source) })
  const place = once.operation<string>({ name: 'order.place', effect: 'transaction' })
  sameType<Parameters<typeof place.within>[0], EntityManager>(true)
  void place.run({ tenant: 'a', caller: 'b', key: 'c' }, 'lamp', ({ tx }) => sameType<typeof tx, EntityManager>(true))
}
