import type { OrmTransactions } from '../store/orm.ts'
import { checkHandle, classOf, databaseOf } from './check.ts'
import type { KnexSender } from './knex-query.ts'
import { queryByKnex } from './knex-query.ts'
import type { KyselySender } from './kysely-query.ts'
import { queryByKysely } from './kysely-query.ts'

export type { OrmTransactions } from '../store/orm.ts'

/** What is used of a `MikroORM` on PostgreSQL or SQLite. */
export interface MikroOrmDatabase {
  // oxlint-disable-next-line typescript/no-explicit-any -- the handle's type is read from the instance.
  readonly em: any
}

/** The `EntityManager` of an instance. */
export type MikroOrmTransaction<Db extends MikroOrmDatabase> = Db['em']

interface Manager {
  fork(): Manager
  getPlatform?(): unknown
  transactional<T>(work: (em: Manager) => Promise<T>, options?: { isolationLevel?: 'read committed' }): Promise<T>
  isInTransaction(): boolean
  /** A transaction of Kysely, before version 7 of Knex. */
  getTransactionContext(): KyselySender | KnexSender | undefined
  flush(): Promise<void>
}

/**
 * Runs `transaction` operations in transactions of MikroORM: the `tx` of an effect is the `EntityManager` of
 * `em.transactional`, forked for each call. What it has collected is flushed before the outcome is recorded.
 *
 * @param orm your `MikroORM` on the database of the store
 * @example
 * ```ts
 * import { defineEntity, MikroORM } from '@mikro-orm/postgresql'
 * import { createLedger } from 'onceonly'
 * import { mikroOrm } from 'onceonly/mikro-orm'
 * import { postgresStore } from 'onceonly/postgres'
 * import { Pool } from 'pg'
 *
 * const Order = defineEntity({ name: 'Order', properties: (p) => ({ item: p.text().primary() }) })
 * const orm = await MikroORM.init({ clientUrl: process.env.DATABASE_URL ?? '', entities: [Order] })
 * const pool = new Pool({ connectionString: process.env.DATABASE_URL })
 * const once = createLedger({ store: postgresStore(pool), transactions: mikroOrm(orm) })
 * const place = once.operation<{ item: string }>({ name: 'order.place', effect: 'transaction' })
 * await place.run({ tenant: 'acme', caller: 'shop', key: 'o1' }, { item: 'lamp' }, async ({ tx }) => {
 *   tx.persist(tx.create(Order, { item: 'lamp' }))
 * })
 * ```
 */
export function mikroOrm<Db extends MikroOrmDatabase>(orm: Db): OrmTransactions<MikroOrmTransaction<Db>> {
  checkHandle('mikroOrm', orm?.em ?? orm, { with: ['fork', 'transactional'], wants: 'a `MikroORM` instance' })
  const { em } = orm as { readonly em: Manager }
  const dialect = databaseOf('mikroOrm', classOf(em.getPlatform?.()))
  return {
    name: 'mikroOrm',
    dialect,
    hooksBeforeCommit: true,
    open: (work) =>
      em
        .fork()
        .transactional((forked) => work(forked), dialect === 'postgres' ? { isolationLevel: 'read committed' } : {}),
    // Each part has a unit of work of its own, which is dropped when the part is undone.
    savepoint: (handle: Manager, work) => handle.transactional((inner) => work(inner)),
    query: async (handle: Manager, text, values) => {
      const context = handle.getTransactionContext()
      if (context === undefined) throw new Error('This EntityManager has no transaction.')
      return 'executeQuery' in context ? queryByKysely(context, text, values) : queryByKnex(context, text, values)
    },
    isTransaction: (handle) => (handle as Partial<Manager> | null | undefined)?.isInTransaction?.() === true,
    flush: (handle: Manager) => handle.flush(),
  }
}
