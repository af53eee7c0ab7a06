import { checkOptionNames, wholeOption } from '../core/option-names.ts'
import type { OrmTransactions, ServerFault } from '../store/orm.ts'
import type { SqlRow } from '../store/sql.ts'
import { checkHandle, refuseOtherDatabase } from './check.ts'

export type { OrmTransactions } from '../store/orm.ts'

/** What is used of a `PrismaClient` on PostgreSQL. */
export interface PrismaDatabase {
  // oxlint-disable-next-line typescript/no-explicit-any -- the handle's type is read from the instance.
  $transaction(work: (tx: any) => Promise<any>, options?: any): Promise<any>
}

/** The transaction client of a `PrismaClient`, with its extensions. */
export type PrismaTransaction<Db extends PrismaDatabase> = Db extends {
  // oxlint-disable-next-line typescript/no-explicit-any -- whatever the callback returns.
  $transaction(work: (tx: infer Tx) => Promise<any>, ...options: any[]): Promise<any>
}
  ? Tx
  : never

/** Options of `prisma`. */
export interface PrismaOptions {
  /** How long Prisma may wait for a connection of its own, in ms. @default 2_000 */
  readonly maxWait?: number
}

/** Prisma ends a transaction after 5 s: a twin that waits in one that you opened gets its answer before that. */
const CLAIM_WAIT_MS = 2_000
const MAX_WAIT_MS = 2_000

interface Sender {
  $queryRawUnsafe(text: string, ...values: unknown[]): Promise<readonly SqlRow[]>
}

/**
 * Runs `transaction` operations in interactive transactions of Prisma: the `tx` of an effect is the transaction client,
 * with your extensions. Their time limit is that of the ledger, not Prisma's five seconds.
 *
 * @param client your `PrismaClient` on the database of the store
 * @example
 * ```ts
 * import { PrismaPg } from '@prisma/adapter-pg'
 * import { PrismaClient } from '@prisma/client'
 * import { createLedger } from 'onceonly'
 * import { postgresStore } from 'onceonly/postgres'
 * import { prisma } from 'onceonly/prisma'
 * import { Pool } from 'pg'
 *
 * const connectionString = process.env.DATABASE_URL
 * const client = new PrismaClient({ adapter: new PrismaPg({ connectionString }) })
 * const once = createLedger({ store: postgresStore(new Pool({ connectionString })), transactions: prisma(client) })
 * const place = once.operation<{ name: string }>({ name: 'order.place', effect: 'transaction' })
 * await place.run({ tenant: 'acme', caller: 'shop', key: 'o1' }, { name: 'lamp' }, async ({ tx }) => {
 *   await tx.order.create({ data: { name: 'lamp' } })
 * })
 * ```
 */
export function prisma<Db extends PrismaDatabase>(
  client: Db,
  options: PrismaOptions = {},
): OrmTransactions<PrismaTransaction<Db>> {
  checkHandle('prisma', client, { with: ['$transaction', '$queryRawUnsafe'], wants: 'a `PrismaClient`' })
  refuseOtherDatabase('prisma', (client as { readonly _activeProvider?: unknown })._activeProvider)
  checkOptionNames('prisma', options, ['maxWait'])
  const maxWait = wholeOption('prisma', 'maxWait', options.maxWait ?? MAX_WAIT_MS)
  return {
    name: 'prisma',
    dialect: 'postgres',
    claimWaitMs: CLAIM_WAIT_MS,
    open: (work, { timeoutMs }) =>
      client.$transaction(work, { maxWait, timeout: timeoutMs, isolationLevel: 'ReadCommitted' }),
    query: (handle: Sender, text, values) => handle.$queryRawUnsafe(text, ...values),
    isTransaction: (handle) => {
      const given = handle as Partial<Record<string, unknown>> | null | undefined
      return typeof given?.['$queryRawUnsafe'] === 'function' && given['$connect'] === undefined
    },
    serverError: (error) => serverFaultIn(error),
  }
}

/** How Prisma names what its database refused as a conflict with other transactions. */
const WRITE_CONFLICT = 'P2034'
const SERIALIZATION_FAILURE = '40001'
/** Error, its meta data, the adapter's error, its cause. */
const LEVELS = 5

interface Wrapped {
  readonly code?: unknown
  readonly originalCode?: unknown
  readonly originalMessage?: unknown
  readonly message?: unknown
  readonly meta?: unknown
  readonly driverAdapterError?: unknown
  readonly cause?: unknown
}

function serverFaultIn(error: unknown): ServerFault | null {
  let next = error as Wrapped | null | undefined
  for (let level = 0; level < LEVELS && typeof next === 'object' && next !== null; level++) {
    const { originalCode: code, originalMessage } = next
    if (typeof code === 'string') return { code, message: String(originalMessage ?? next.message) }
    const deeper = next.meta ?? next.driverAdapterError ?? next.cause
    if (deeper === undefined && next.code === WRITE_CONFLICT) break
    next = deeper as Wrapped | undefined
  }
  const { code, message } = (error ?? {}) as Wrapped
  return code === WRITE_CONFLICT ? { code: SERIALIZATION_FAILURE, message: String(message) } : null
}
