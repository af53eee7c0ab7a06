import {
  defineEntity,
  type EntityManager,
  type EventSubscriber,
  MikroORM,
  type TransactionEventArgs,
} from '@mikro-orm/postgresql'
import { createLedger } from 'onceonly'
import { mikroOrm } from 'onceonly/mikro-orm'
import { type PostgresStore } from 'onceonly/postgres'
import { row, sameType } from './row.ts'

const Order = defineEntity({ name: 'Order', tableName: 'orders', properties: (p) => ({ name: p.text().primary() }) })

/** The next commit comes after a statement that failed unseen. */
let hides = false

class Hiding implements EventSubscriber {
  async beforeTransactionCommit({ em, transaction }: TransactionEventArgs) {
    if (!hides) return
    hides = false
    await em
      .getConnection()
      .execute('SELECT 1 / 0', [], 'all', transaction)
      .catch(() => {})
  }
}

export const mikroOrmRows = [
  row('MikroORM', async (url, { max }) => {
    const entities = [Order]
    const orm = await MikroORM.init({ clientUrl: url, entities, subscribers: [new Hiding()], pool: { min: 0, max } })
    return {
      transactions: mikroOrm(orm),
      // Only collected here: the unit of work is flushed before the outcome is recorded.
      insert: async (tx: typeof orm.em, name) => {
        tx.persist(tx.create(Order, { name }))
      },
      transaction: (work) => orm.em.fork().transactional((em) => work(em)),
      nested: async (tx, work) => {
        await tx.transactional((inner) => work(inner))
      },
      raw: (tx, text) => tx.execute(text),
      failBeforeCommit: () => void (hides = true),
      // MikroORM never gives back a connection whose session was ended, and waits for it forever.
      close: () => Promise.race([orm.close(), new Promise<void>((resolve) => setTimeout(resolve, 1_000).unref())]),
    }
  }),
]

/** Checked by the compiler only. */
export function types(orm: MikroORM, store: PostgresStore): void {
  const once = createLedger({ store, transactions: mikroOrm(orm) })
  const place = once.operation<string>({ name: 'order.place', effect: 'transaction' })
  sameType<Parameters<typeof place.within>[0], typeof orm.em>(true)
  void place.run({ tenant: 'a', caller: 'b', key: 'c' }, 'lamp', ({ tx }) => {
    sameType<typeof tx, typeof orm.em>(true)
    const em: EntityManager = tx
    return em === tx
  })
}
