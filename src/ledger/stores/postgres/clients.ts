import { AsyncLocalStorage } from 'node:async_hooks'
import { OnceError } from '../../core/errors.ts'
import type { Deadline } from '../../store/deadline.ts'
import type { Connection } from './connection.ts'
import { borrow } from './connection.ts'
import type { PgClient, PgPool } from './driver.ts'

/** How long a connection of the pool leads to one session of the server: until it is closed, or for one transaction. */
export type PoolMode = 'session' | 'transaction'

/** Batches and the listener keep one each, and a transaction needs a third: below that nothing is kept. */
const LEAST_TO_KEEP = 3

/** The clients of the user's pool, and what may be done with them. */
export interface Clients {
  /** How many the pool has at most. */
  readonly most: number
  /** In mode `transaction` nothing is kept: no settings, no prepared statements, no listener. */
  mode(): PoolMode
  /** Finds the mode on the first connection, where it was not given. */
  detect(connection: Connection): Promise<PoolMode>
  /** A client, in time. Refused when it could never come. */
  borrow(deadline: Deadline): Promise<Connection>
  /** Runs the work of a transaction, which holds a client for as long. */
  holding<T>(work: () => Promise<T>): Promise<T>
  /** A sentence for a transaction that took too long while calls wait for its client; else empty. */
  heldUpBy(): string
}

interface Holder {
  open: boolean
  /** How many clients it waits for beside its own. */
  waits: number
}

export function createClients(pool: PgPool, given: PoolMode | 'auto'): Clients {
  const most = pool.options?.max ?? Number.POSITIVE_INFINITY
  const holders = new AsyncLocalStorage<Holder>()
  /** Transactions that wait for a client while they hold one. */
  const waiting = new Set<Holder>()
  let mode: PoolMode | null = modeBySize(given, most)

  async function borrowInside(holder: Holder, deadline: Deadline): Promise<Connection> {
    holder.waits += 1
    waiting.add(holder)
    try {
      // Every client belongs to a transaction that cannot end before it gets another one.
      if (waiting.size >= most) throw allHeld(most)
      return await borrow(pool, deadline)
    } finally {
      holder.waits -= 1
      if (holder.waits === 0) waiting.delete(holder)
    }
  }

  return {
    most,
    mode: () => mode ?? 'session',
    detect: async (connection) => (mode ??= await modeOf(connection)),
    borrow: (deadline) => {
      const holder = holders.getStore()
      return holder?.open === true ? borrowInside(holder, deadline) : borrow(pool, deadline)
    },
    holding: async (work) => {
      const holder: Holder = { open: true, waits: 0 }
      try {
        return await holders.run(holder, work)
      } finally {
        holder.open = false
        waiting.delete(holder)
      }
    },
    heldUpBy: () => {
      const calls = pool.waitingCount ?? 0
      if (calls === 0 || most === Number.POSITIVE_INFINITY) return ''
      const wait = calls === 1 ? '1 call waits' : `${calls} calls wait`
      return ` Meanwhile ${wait} for one of the ${most} clients of the pool: inside a transaction use \`tx\`, not the pool.`
    },
  }
}

function modeBySize(given: PoolMode | 'auto', most: number): PoolMode | null {
  if (given !== 'auto' && given !== 'session' && given !== 'transaction') {
    const text = `postgresStore: \`poolMode\` must be 'auto', 'session' or 'transaction', not ${JSON.stringify(given)}.`
    throw new OnceError('bad_option', text)
  }
  if (given === 'session' && most < LEAST_TO_KEEP) {
    const text = `\`pool\` has ${most} clients (\`max\`), and \`poolMode: 'session'\` keeps some of them.`
    throw new OnceError('bad_option', `${text} Give it ${LEAST_TO_KEEP}, or leave \`poolMode\` out.`)
  }
  if (given !== 'auto') return given
  return most < LEAST_TO_KEEP ? 'transaction' : null
}

/**
 * A server sends its clients the number of their session when they connect. A pooler hands out numbers of its own, because
 * its clients have no session: then the session that answers has another number.
 */
async function modeOf(connection: Connection): Promise<PoolMode> {
  const announced = (connection.client as PgClient & { readonly processID?: unknown }).processID
  if (typeof announced !== 'number') return 'session'
  const [result] = await connection.script('SELECT pg_backend_pid() AS pid')
  const [row] = (result?.rows ?? []) as readonly { readonly pid: string }[]
  return Number(row?.pid) === announced ? 'session' : 'transaction'
}

function allHeld(most: number): OnceError {
  const all = most === 1 ? 'The only client of the pool is' : `All ${most} clients of the pool are`
  const text = `${all} held by a transaction that waits for another one, which would never come.`
  return new OnceError('pool_exhausted', text, { applied: 'no' })
}
