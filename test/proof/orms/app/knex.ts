import Knex, { type Knex as KnexTypes } from 'knex'
import { createLedger } from 'onceonly'
import { knex } from 'onceonly/knex'
import { type PostgresStore } from 'onceonly/postgres'
import { row, sameType } from './row.ts'

const camel = (name: string) => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
const snake = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** As applications rename columns: every object in whatever comes back. */
function renamed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(renamed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [camel(name), inner]))
}

function rowOf(name: string, hooks: Partial<KnexTypes.Config>) {
  return row(name, async (url, { max }) => {
    const db = Knex({ client: 'pg', connection: url, pool: { min: 0, max }, ...hooks })
    return {
      transactions: knex(db),
      insert: async (tx: KnexTypes.Transaction, value) => {
        await tx('orders').insert({ name: value })
      },
      transaction: (work) => db.transaction(work),
      nested: async (tx, work) => {
        await tx.transaction(work)
      },
      raw: async (tx, text) => await tx.raw(text),
      close: () => db.destroy(),
    }
  })
}

export const knexRows = [
  rowOf('Knex', {}),
  rowOf('Knex with postProcessResponse and wrapIdentifier', {
    postProcessResponse: renamed,
    wrapIdentifier: (value, wrap) => wrap(snake(value)),
  }),
]

/** Checked by the compiler only. */
export function types(db: KnexTypes, store: PostgresStore): void {
  const once = createLedger({ store, transactions: knex(db) })
  const place = once.operation<string>({ name: 'order.place', effect: 'transaction' })
  sameType<Parameters<typeof place.within>[0], KnexTypes.Transaction>(true)
  void place.run({ tenant: 'a', caller: 'b', key: 'c' }, 'lamp', ({ tx }) =>
    sameType<typeof tx, KnexTypes.Transaction>(true),
  )
}
