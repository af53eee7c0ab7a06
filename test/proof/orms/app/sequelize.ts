import { createLedger } from 'onceonly'
import { type PostgresStore } from 'onceonly/postgres'
import { sequelize } from 'onceonly/sequelize'
import { DataTypes, Sequelize, type Transaction } from 'sequelize'
import { row, sameType } from './row.ts'

export const sequelizeRows = [
  row('Sequelize', async (url, { max }) => {
    const db = new Sequelize(url, { logging: false, pool: { max } })
    const Order = db.define(
      'Order',
      { name: { type: DataTypes.TEXT, primaryKey: true } },
      { tableName: 'orders', timestamps: false },
    )
    return {
      transactions: sequelize(db),
      insert: async (tx: Transaction, name) => {
        await Order.create({ name }, { transaction: tx })
      },
      transaction: (work) => db.transaction(work),
      nested: (tx, work) => db.transaction({ transaction: tx }, work),
      raw: (tx, text) => db.query(text, { transaction: tx }),
      close: () => db.close(),
    }
  }),
]

/** Checked by the compiler only. */
export function types(db: Sequelize, store: PostgresStore): void {
  const once = createLedger({ store, transactions: sequelize(db) })
  const place = once.operation<string>({ name: 'order.place', effect: 'transaction' })
  sameType<Parameters<typeof place.within>[0], Transaction>(true)
  void place.run({ tenant: 'a', caller: 'b', key: 'c' }, 'lamp', ({ tx }) => sameType<typeof tx, Transaction>(true))
}
