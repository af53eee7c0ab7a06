import { PrismaPg } from '@prisma/adapter-pg'
import { type Prisma, PrismaClient } from '@prisma/client'
import { createLedger } from 'onceonly'
import { type PostgresStore } from 'onceonly/postgres'
import { prisma } from 'onceonly/prisma'
import { row, sameType } from './row.ts'

export const prismaRows = [
  row('Prisma', async (url, { max }) => {
    const client = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max }) })
    return {
      transactions: prisma(client),
      insert: async (tx: Prisma.TransactionClient, name) => {
        await tx.order.create({ data: { name } })
      },
      transaction: (work) => client.$transaction(work),
      nested: (tx, work) => tx.$transaction(work),
      raw: (tx, text) => tx.$executeRawUnsafe(text),
      close: () => client.$disconnect(),
    }
  }),
  row('Prisma with an extension', async (url, { max }) => {
    const client = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max }) }).$extends({
      query: { $allOperations: ({ args, query }) => query(args) },
      model: { order: { place: async (name: string) => name } },
    })
    type Tx = Parameters<Parameters<typeof client.$transaction>[0]>[0]
    return {
      transactions: prisma(client),
      insert: async (tx: Tx, name) => {
        await tx.order.place(name)
        await tx.order.create({ data: { name } })
      },
      transaction: (work) => client.$transaction(work),
      nested: (tx, work) => tx.$transaction(work),
      raw: (tx, text) => tx.$executeRawUnsafe(text),
      close: () => client.$disconnect(),
    }
  }),
]

/** Checked by the compiler only. */
export function types(client: PrismaClient, store: PostgresStore): void {
  const once = createLedger({ store, transactions: prisma(client) })
  const place = once.operation<string>({ name: 'order.place', effect: 'transaction' })
  sameType<Parameters<typeof place.within>[0], Parameters<Parameters<typeof client.$transaction>[0]>[0]>(true)
  void place.run({ tenant: 'a', caller: 'b', key: 'c' }, 'lamp', ({ tx }) =>
    sameType<typeof tx, Parameters<Parameters<typeof client.$transaction>[0]>[0]>(true),
  )
}
