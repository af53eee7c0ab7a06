import { isOnceError, OnceError } from '../../core/errors.ts'
import { limits, SECOND } from '../../core/limits.ts'
import type { Transactions } from '../../store/port.ts'
import { rollBack } from '../../store/sql/connection.ts'
import type { Ground } from '../../store/sql/transactions.ts'
import { createServerTransactions, runningTwin } from '../../store/sql/transactions.ts'
import type { Connection } from './connection.ts'
import { borrow } from './connection.ts'
import type { Core } from './core.ts'
import * as errors from './errors.ts'
import { abortedError, isAborted, isBusy, isSessionOver, sqlErrorOf, storeError } from './errors.ts'
import { findOwnTables, quoteText, recordLock } from './names.ts'
import { decideAlone } from './session.ts'
import { plannedOn } from './statement.ts'
import type { Steps } from './steps.ts'
import type { PostgresOpenTx, PostgresTx } from './tx.ts'
import { createTx } from './tx.ts'
import type { Watchers } from './watch.ts'

export interface TransactionParts {
  readonly core: Core
  readonly steps: Steps
  readonly watchers: Watchers
}

/** The server ends a transaction whose process was paused or lost its network; a living one keeps its own deadline. */
const SERVER_GRACE_MS = SECOND
const MARK = 'onceonly.transaction'
const OTHER = 'onceonly: another transaction'

type PostgresGround = Ground<Connection>

interface Open extends PostgresOpenTx {
  /** A caller with little patience for a twin has the usual patience for the rows of its own effect. */
  patient: boolean
}

export function createTransactions({ core, steps, watchers }: TransactionParts): Transactions<PostgresTx> {
  const findTables = findOwnTables(core.names, 'transaction')
  return createServerTransactions<Connection, PostgresTx, Open>(core, {
    errors,
    borrow: (deadline) => borrow(core.pool, deadline),
    begin: (ground) => begin(core, ground),
    open: ({ connection, call }) => ({
      ...createTx(connection, findTables),
      patient: call.lockMs >= limits.transactionLockMs,
    }),
    apply: async (open, request, woken) => {
      const applied = await decideAlone({ steps, on: plannedOn(open), woken }, request)
      if (!open.patient) {
        open.patient = true
        await open.query({ text: `SET LOCAL lock_timeout = ${limits.transactionLockMs}` })
      }
      return applied
    },
    commit,
    undo,
    told,
    committed: async (connection, woken) => {
      watchers.changed(woken)
      await steps.notify(connection, plannedOn(connection), woken)
    },
  })
}

/**
 * One round trip. The isolation is named, because a default of REPEATABLE READ would not see what a twin committed. The
 * advisory lock finds a running twin without waiting for its row.
 */
async function begin({ names, fault }: Core, { connection, mark, call }: PostgresGround): Promise<void> {
  const serverMs = Math.ceil(call.timeoutMs + SERVER_GRACE_MS)
  const twin = call.refuseTwinOf
  const lock = twin === null ? '' : `SELECT pg_try_advisory_xact_lock(${recordLock(names, twin)}) AS free`
  try {
    const results = await connection.script(
      `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
       SET LOCAL lock_timeout = ${Math.max(1, Math.ceil(call.lockMs))};
       SET LOCAL statement_timeout = ${serverMs};
       SET LOCAL idle_in_transaction_session_timeout = ${serverMs};
       SET LOCAL ${MARK} = ${quoteText(mark)};
       ${findOwnTables(names, 'transaction')}
       ${lock}`,
    )
    const [answer] = (results.at(-1)?.rows ?? []) as readonly { readonly free?: unknown }[]
    if (twin === null || answer?.free === 't') return
  } catch (error) {
    connection.destroy(error as Error)
    throw fault(error, 'no')
  }
  await rollBack(connection)
  throw runningTwin()
}

/**
 * Fails unless this is still our transaction, and with it whatever stands behind it in the same message. Code that kept
 * the connection from elsewhere may have ended it, and the statements after that were on their own.
 */
function checkMark({ mark }: PostgresGround): string {
  const current = `current_setting('${MARK}', true)`
  return `SELECT CASE WHEN ${current} = ${quoteText(mark)} THEN 0 ELSE concat('${OTHER} ', ${current})::integer END`
}

function isOther(error: unknown): boolean {
  return sqlErrorOf(error)?.message.includes(OTHER) ?? false
}

function lost(): OnceError {
  return new OnceError('transaction_lost', 'The transaction ended while its effect ran.')
}

async function undo(ground: PostgresGround): Promise<OnceError | null> {
  const { connection } = ground
  if (connection.broken !== null) return null
  try {
    await connection.script(`${checkMark(ground)}; ROLLBACK`)
    return null
  } catch (error) {
    await rollBack(connection)
    return isOther(error) ? lost() : null
  }
}

async function commit(ground: PostgresGround): Promise<void> {
  const { connection } = ground
  if (connection.broken !== null) throw storeError(connection.broken, 'no')
  ground.applied = 'maybe'
  let command: string | undefined
  try {
    const results = await connection.script(`${checkMark(ground)}; COMMIT`)
    command = results.at(-1)?.command
  } catch (error) {
    if (isOther(error)) {
      connection.destroy(error as Error)
      throw lost()
    }
    if (isAborted(error)) {
      await rollBack(connection)
      throw abortedError(error)
    }
    connection.destroy(error as Error)
    // What the user's deferred constraints and triggers say at the end is the user's to read.
    if (/^(23|P0)/.test(sqlErrorOf(error)?.code ?? '')) throw error
    throw storeError(error, 'maybe')
  }
  // The server says ROLLBACK when it was asked to commit a transaction in which a statement had failed.
  if (command !== 'COMMIT') throw abortedError()
}

/** How many causes are looked through for the server's own error: query builders wrap it once or twice. */
const CAUSES = 5

function told(error: unknown, { connection }: PostgresGround): unknown {
  if (isOnceError(error)) return error
  let cause: unknown = error
  for (let depth = 0; depth < CAUSES && cause instanceof Error; depth++, cause = cause.cause) {
    if (cause === connection.broken || isBusy(cause) || isSessionOver(cause) || isAborted(cause)) {
      return storeError(cause, 'no')
    }
  }
  return error
}
