import { randomUUID } from 'node:crypto'
import type { AppliedWord } from '../../core/errors.ts'
import { isOnceError, OnceError } from '../../core/errors.ts'
import { limits, SECOND } from '../../core/limits.ts'
import type { DecisionOf, Request } from '../../core/request.ts'
import type { Deadline } from '../../store/deadline.ts'
import { inTime } from '../../store/deadline.ts'
import type { AppliedDecision, Session, TransactionCall, Transactions } from '../../store/port.ts'
import type { Connection } from './connection.ts'
import { borrow, rollBack } from './connection.ts'
import type { Core } from './core.ts'
import { abortedError, isAborted, isBusy, isSessionOver, sqlErrorOf, storeError, timeoutError } from './errors.ts'
import { findOwnTables, quoteText, recordLock } from './names.ts'
import { decideAlone } from './session.ts'
import { plannedOn } from './statement.ts'
import type { Steps } from './steps.ts'
import type { OpenTx, PostgresTx } from './tx.ts'
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

export function createTransactions(parts: TransactionParts): Transactions<PostgresTx> {
  const { core } = parts
  return {
    run: (work, call) =>
      core.call(call, async (deadline) => {
        const connection = await borrow(core.pool, deadline)
        const ground: Ground = { connection, deadline, mark: randomUUID(), applied: 'no', late: null }
        const off = deadline.onPassed(() => expire(ground))
        try {
          return await runOn(parts, ground, call, work)
        } finally {
          off()
          connection.release()
        }
      }),
  }
}

interface Ground {
  readonly connection: Connection
  readonly deadline: Deadline
  /** A setting that holds until the transaction ends, however it ends. */
  readonly mark: string
  /** What a lost answer means at this moment. */
  applied: AppliedWord
  /** Why it was ended, once its time is up. */
  late: OnceError | null
}

type Work<T> = (session: Session<PostgresTx>) => Promise<T>

async function runOn<T>(parts: TransactionParts, ground: Ground, call: TransactionCall, work: Work<T>): Promise<T> {
  const { connection, deadline } = ground
  await begin(parts.core, ground, call)
  const tx = createTx(connection, findOwnTables(parts.core.names, 'transaction'))
  const woken: string[] = []
  const session = createSession(parts, tx, woken, call)
  let result: T
  try {
    // The work may continue after its time is up: its result is dropped then, and its handle refuses everything.
    result = await inTime(
      tx.outermost(() => work(session)),
      deadline,
      () => ground.late ?? expire(ground),
    )
    // A statement that the work did not wait for still belongs to it.
    await tx.idle()
  } catch (error) {
    tx.close(ground.late ?? ended())
    throw (await undo(ground)) ?? told(error, connection)
  }
  tx.close(ended())
  await commit(ground)
  parts.watchers.changed(woken)
  await parts.steps.notify(connection, plannedOn(connection), woken)
  return result
}

function createSession(
  { core, steps }: TransactionParts,
  tx: OpenTx,
  woken: string[],
  { lockMs }: TransactionCall,
): Session<PostgresTx> {
  const tools = { steps, on: plannedOn(tx), woken }
  // A caller with little patience for a twin has the usual patience for the rows of its own effect.
  let impatient = lockMs < limits.transactionLockMs
  const bePatient = async () => {
    if (!impatient) return
    impatient = false
    await tx.query({ text: `SET LOCAL lock_timeout = ${limits.transactionLockMs}` })
  }
  return {
    tx: tx.handle,
    apply: async <R extends Request>(request: R) => {
      try {
        const applied = (await decideAlone(tools, request)) as AppliedDecision<DecisionOf<R>>
        await bePatient()
        return applied
      } catch (error) {
        // Nothing of a transaction is applied before its COMMIT was sent.
        throw core.fault(error, 'no')
      }
    },
    savepoint: tx.handle.inSavepoint,
  }
}

/**
 * One round trip. The isolation is named, because a default of REPEATABLE READ would not see what a twin committed. The
 * advisory lock finds a running twin without waiting for its row.
 */
async function begin({ names, fault }: Core, { connection, mark }: Ground, call: TransactionCall): Promise<void> {
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
  const details = { twin: true }
  throw new OnceError('store_busy', 'Another transaction runs for this record right now.', { details })
}

/**
 * Fails unless this is still our transaction, and with it whatever stands behind it in the same message. Code that kept
 * the connection from elsewhere may have ended it, and the statements after that were on their own.
 */
function checkMark({ mark }: Ground): string {
  const current = `current_setting('${MARK}', true)`
  return `SELECT CASE WHEN ${current} = ${quoteText(mark)} THEN 0 ELSE concat('${OTHER} ', ${current})::integer END`
}

function isOther(error: unknown): boolean {
  return sqlErrorOf(error)?.message.includes(OTHER) ?? false
}

function lost(): OnceError {
  return new OnceError('transaction_lost', 'The transaction ended while its effect ran.')
}

/**
 * Rolls back. The error that it answers, when there is no transaction of ours any more, says more than the effect's.
 */
async function undo(ground: Ground): Promise<OnceError | null> {
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

/** The dangerous region: from here until the answer comes, the outcome of the transaction is unknown. */
async function commit(ground: Ground): Promise<void> {
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

/** Errors of the effect pass unchanged, unless they only repeat that the transaction itself could not continue. */
function told(error: unknown, connection: Connection): unknown {
  if (isOnceError(error)) return error
  let cause: unknown = error
  for (let depth = 0; depth < CAUSES && cause instanceof Error; depth++, cause = cause.cause) {
    if (cause === connection.broken || isBusy(cause) || isSessionOver(cause) || isAborted(cause)) {
      return storeError(cause, 'no')
    }
  }
  return error
}

function expire(ground: Ground): OnceError {
  const { connection, deadline, applied } = ground
  const slowWork = new OnceError('transaction_too_long', `A transaction took more than ${deadline.timeoutMs} ms.`)
  ground.late ??= connection.waiting ? timeoutError(deadline.timeoutMs, applied) : slowWork
  connection.destroy(ground.late)
  return ground.late
}

function ended(): OnceError {
  return new OnceError('transaction_aborted', 'The transaction is over; its session cannot be used any more.')
}
