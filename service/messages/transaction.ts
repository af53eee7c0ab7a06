import { setTimeout as sleep } from 'node:timers/promises'
import type { Script, SqlTx } from 'onceonly'
import { isOnceError } from 'onceonly'
import type { Base } from '../store.ts'

/** A few short statements; a transaction that holds their rows longer is stuck. */
const CALL = { timeoutMs: 10_000, lockMs: 5_000, refuseTwinOf: null }
const TRIES = 5
const PAUSE_MS = 50

/**
 * Runs the work in one transaction, again where that can help: after a deadlock or a lost connection, and after another
 * one inserted the same lead or the same message first, or removed an old lead. The work must find its own rows again,
 * because the answer to a commit may have been lost.
 */
export function inTransaction<T>(base: Base, work: (tx: SqlTx) => Promise<T>): Promise<T> {
  return again(() => base.store.transactions.run(({ tx }) => work(tx), CALL))
}

/** The same for a script: on SQLite scripts of several requests share one commit. */
export function inScript<T>({ sql }: Base, begin: () => Script<T>): Promise<T> {
  return again(() => sql.script(begin))
}

async function again<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt()
    } catch (error) {
      const mayHelp = isOnceError(error, 'store_busy') || isOnceError(error, 'store_unavailable') || isTaken(error)
      if (!mayHelp || tries >= TRIES) throw error
      await sleep(PAUSE_MS * tries * (0.5 + Math.random()))
    }
  }
}

/** A unique index refused the row; or what it belongs to was removed in the meantime. */
const POSTGRES_RACES: ReadonlySet<unknown> = new Set(['23505', '23503'])
const SQLITE_UNIQUE = 2_067

/** Another transaction was faster, and the next try sees what it did. */
function isTaken(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if ('code' in error && POSTGRES_RACES.has(error.code)) return true
  return 'errcode' in error && error.errcode === SQLITE_UNIQUE
}
