import { setTimeout as sleep } from 'node:timers/promises'
import type { SqlTx } from 'onceonly'
import { isOnceError } from 'onceonly'
import type { Base } from '../store.ts'

/** A few short statements; whoever holds their rows longer is stuck. */
const CALL = { timeoutMs: 10_000, lockMs: 5_000, refuseTwinOf: null }
const TRIES = 5
const PAUSE_MS = 50

/**
 * Runs the work in one transaction, again where that can help: after a deadlock or a lost connection, and after somebody
 * else inserted the same lead or the same message first. The work must find its own rows again, because the answer to
 * a commit may have been lost.
 */
export async function inTransaction<T>(base: Base, work: (tx: SqlTx) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await base.store.transactions.run(({ tx }) => work(tx), CALL)
    } catch (error) {
      const mayHelp = isOnceError(error, 'store_busy') || isOnceError(error, 'store_unavailable') || isTaken(error)
      if (!mayHelp || tries >= TRIES) throw error
      await sleep(PAUSE_MS * tries * (0.5 + Math.random()))
    }
  }
}

const POSTGRES_UNIQUE = '23505'
const SQLITE_UNIQUE = 2_067

/** A unique index refused the row. */
function isTaken(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if ('code' in error && error.code === POSTGRES_UNIQUE) return true
  return 'errcode' in error && error.errcode === SQLITE_UNIQUE
}
