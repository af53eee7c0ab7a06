import { isOnceError, OnceError } from '../../core/errors.ts'
import { limits, SECOND } from '../../core/limits.ts'
import type { LedgerRecord } from '../../core/record.ts'
import type { ClaimRequest } from '../../core/request.ts'
import { lostTransaction } from '../../store/foreign.ts'
import type { TransactionCall, Transactions } from '../../store/port.ts'
import { rollBack } from '../../store/sql/connection.ts'
import type { Ground } from '../../store/sql/transactions.ts'
import { createServerTransactions, ended, runningTwin } from '../../store/sql/transactions.ts'
import type { Connection } from './connection.ts'
import type { Core } from './core.ts'
import type { PgClient, PgResult } from './driver.ts'
import { abortedError, errors, isAborted, isBusy, isSessionOver, isUnprepared, sqlErrorOf } from './errors.ts'
import { failUnlessMarked, MARK, OTHER } from './mark.ts'
import { findOwnTables, quoteText, recordLock } from './names.ts'
import { decideAlone } from './session.ts'
import { UNSETTLED, usingIndex } from './settle.ts'
import type { ScriptForm } from './statement.ts'
import { plannedOn } from './statement.ts'
import type { Steps } from './steps.ts'
import type { PostgresOpenTx, PostgresTx } from './tx.ts'
import { createTx, PART } from './tx.ts'
import type { Watchers } from './watch.ts'

export interface TransactionParts {
  readonly core: Core
  readonly steps: Steps
  readonly watchers: Watchers
}

/** The server ends a transaction whose process was paused or lost its network; a living one keeps its own deadline. */
export const SERVER_GRACE_MS = SECOND

type PostgresGround = Ground<Connection>

interface Open extends PostgresOpenTx {
  /** A caller with little patience for a twin has the usual patience for the rows of its own effect. */
  patient: boolean
  readonly connection: Connection
}

export function createTransactions({ core, steps, watchers }: TransactionParts): Transactions<PostgresTx> {
  const findTables = findOwnTables(core.names, 'transaction')
  /** An effect of this store has removed what was prepared, unseen: the next try, and all others, settle apart. */
  let settlesApart = false
  /** The record that a transaction wrote last; it counts once the transaction has committed. */
  const written = new WeakMap<Connection, LedgerRecord | null>()
  return createServerTransactions<Connection, PostgresTx, Open>(core, {
    errors,
    borrow: core.clients.borrow,
    heldUpBy: core.clients.heldUpBy,
    begin: (ground) => begin(core, steps, ground),
    open: ({ connection, call, claimed }) => {
      const open = createTx(connection, { findTables, partOpen: claimed !== null })
      const outermost: Open['outermost'] = (work) => core.clients.holding(() => open.outermost(work))
      return { ...open, outermost, patient: isPatient(call), connection }
    },
    apply: async (open, request, woken) => {
      const applied = await decideAlone({ steps, on: plannedOn(open), woken }, request)
      written.set(open.connection, applied.record)
      if (!open.patient) {
        open.patient = true
        await open.query({ text: `SET LOCAL lock_timeout = ${limits.transactionLockMs}` })
      }
      return applied
    },
    settleLast: (ground, open, request) => {
      // Only for a record that this transaction has inserted, which no other can have changed, and with no part around.
      if (!open.keepsPrepared()) known.set(ground.connection.client, null)
      const form = formIn(core)
      const prepared = form === 'inline' || (!settlesApart && open.keepsPrepared())
      const may = prepared && ground.claimed !== null && open.depth() === 0
      const text = may ? steps.settle.text(request, form, ground.mark) : null
      if (text === null) return null
      const row = settleLast(ground, open, text, () => void (settlesApart = true))
      return row.then((given) => {
        const applied = steps.settle.answer(request, given)
        if (applied !== null) written.set(ground.connection, applied.record)
        return applied
      })
    },
    commit,
    undo,
    translate,
    committed: async (connection, woken) => {
      core.remembered.note(written.get(connection) ?? null)
      watchers.changed(woken)
      await steps.notify(connection, plannedOn(connection), woken)
    },
  })
}

export function isPatient({ lockMs }: TransactionCall): boolean {
  return lockMs >= limits.transactionLockMs
}

/**
 * One round trip. The isolation is named, because a default of REPEATABLE READ would not see what a twin committed. The
 * advisory lock finds a running twin without waiting for its row.
 */
async function begin(core: Core, steps: Steps, ground: PostgresGround): Promise<void> {
  const { names, fault } = core
  const { connection, mark, call } = ground
  const serverMs = Math.ceil(call.timeoutMs + SERVER_GRACE_MS)
  const twin = call.refuseTwinOf
  const settings = {
    lock_timeout: Math.max(1, Math.ceil(call.lockMs)),
    statement_timeout: serverMs,
    idle_in_transaction_session_timeout: serverMs,
    [MARK]: mark,
  }
  // Each a statement without a result: a function call for each would be parsed, planned and answered with a row.
  const set = Object.entries(settings).map(([name, value]) => `SET LOCAL ${name} = ${quoteText(`${value}`)};`)
  const claim =
    call.claim === undefined || !isPatient(call) ? null : claimText(core, steps, connection.client, call.claim)
  try {
    const results = await connection.script(
      `${claim === null ? '' : claim.prepare}
       BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
       ${set.join(' ')}
       ${twin === null ? '' : `SELECT ${checkFree(recordLock(names, twin))};`}
       ${findOwnTables(names, 'transaction')}
       ${claim === null ? '' : `${claim.execute}; SAVEPOINT ${PART}`}`,
    )
    if (call.claim === undefined || claim === null) return
    notePrepared(core, steps, connection.client)
    ground.claimed = steps.insertClaims.answer(call.claim, results.at(-2)?.rows ?? [])
  } catch (error) {
    if (claim !== null && isUnprepared(error)) {
      // Statements that are prepared do not stay on this connection: one message for each statement, then.
      known.set(connection.client, null)
      await rollBack(connection)
      await begin(core, steps, ground)
      return
    }
    // Whatever waited, waited for the row of a twin.
    if (isOther(error) || (claim !== null && isBusy(error))) {
      if (claim !== null) notePrepared(core, steps, connection.client)
      await rollBack(connection)
      throw runningTwin()
    }
    connection.destroy(error as Error)
    throw fault(error, 'no')
  }
}

/** The names of statements that were prepared on a connection, of every store on it; null where they do not stay. */
const known = new WeakMap<PgClient, Set<string> | null>()

interface ClaimText {
  readonly prepare: string
  readonly execute: string
}

/** What is prepared must not outlive a transaction where the session is another one in the next. */
function formIn({ clients }: Core): ScriptForm {
  return clients.mode() === 'session' ? 'execute' : 'inline'
}

/** The claim, and what has to be prepared before it. Null when it cannot be sent together with BEGIN. */
function claimText(core: Core, steps: Steps, client: PgClient, claim: ClaimRequest): ClaimText | null {
  if (formIn(core) === 'inline') {
    const execute = steps.insertClaims.text(claim, 'inline')
    return execute === null ? null : { prepare: '', execute }
  }
  const prepared = known.get(client)
  const execute = prepared === null ? null : steps.insertClaims.text(claim, 'execute')
  if (execute === null) return null
  const { script: first } = steps.insertClaims
  const { script: last } = steps.settle
  return { prepare: prepared?.has(last.name) === true ? '' : `${first.prepare}; ${last.prepare};`, execute }
}

/** Also when the transaction itself failed: what was prepared before it stays. */
function notePrepared(core: Core, { settle }: Steps, client: PgClient): void {
  if (formIn(core) === 'inline') return
  const prepared = known.get(client) ?? new Set()
  prepared.add(settle.script.name)
  known.set(client, prepared)
}

/** Fails when another transaction has the lock, and with it whatever stands behind it in the same message. */
function checkFree(lock: string): string {
  const failing = `concat('${OTHER} ', current_setting('${MARK}', true))::integer`
  return `CASE WHEN pg_try_advisory_xact_lock(${lock}) THEN 0 ELSE ${failing} END`
}

function checkMark({ mark }: PostgresGround): string {
  return `SELECT CASE ${failUnlessMarked(quoteText(mark))} ELSE 0 END`
}

function isOther(error: unknown): boolean {
  return sqlErrorOf(error)?.message.includes(OTHER) ?? false
}

function removed(cause: unknown): OnceError {
  const message = 'The effect removed or changed the record of its own key, so that its outcome could not be recorded.'
  return new OnceError('transaction_aborted', message, { cause, applied: 'no' })
}

async function undo(ground: PostgresGround): Promise<OnceError | null> {
  const { connection } = ground
  if (connection.broken !== null) return null
  try {
    await connection.script(`${checkMark(ground)}; ROLLBACK`)
    return null
  } catch (error) {
    await rollBack(connection)
    return isOther(error) ? lostTransaction() : null
  }
}

async function commit(ground: PostgresGround): Promise<void> {
  const { connection } = ground
  await committing(ground, () => connection.script(`${checkMark(ground)}; COMMIT`))
}

/**
 * The settle and COMMIT in one message. A settle that wrote nothing fails the message, so that no effect is committed
 * without its outcome.
 */
async function settleLast(
  ground: PostgresGround,
  open: Open,
  settle: string,
  unprepared: () => void,
): Promise<unknown> {
  ground.over = true
  const send = () => open.end(`${usingIndex(settle)}; COMMIT`, ended)
  const results = await committing(ground, () =>
    send().catch((error: unknown) => {
      if (isUnprepared(error)) unprepared()
      throw error
    }),
  )
  return results.at(-3)?.rows[0]
}

async function committing(
  ground: PostgresGround,
  send: () => Promise<readonly PgResult[]>,
): Promise<readonly PgResult[]> {
  const { connection } = ground
  if (connection.broken !== null) throw errors.storeError(connection.broken, 'no')
  ground.applied = 'maybe'
  let results: readonly PgResult[]
  try {
    results = await send()
  } catch (error) {
    if (isOther(error)) {
      connection.destroy(error as Error)
      throw lostTransaction()
    }
    if (isAborted(error)) {
      await rollBack(connection)
      throw abortedError(error)
    }
    connection.destroy(error as Error)
    // The message ended there, before COMMIT: nothing was written, and the next try settles apart.
    if (isUnprepared(error)) throw errors.storeError(error, 'no')
    if (sqlErrorOf(error)?.message.includes(UNSETTLED)) throw removed(error)
    // What the user's deferred constraints and triggers say at the end is the user's to read.
    if (/^(23|P0)/.test(sqlErrorOf(error)?.code ?? '')) throw error
    throw errors.storeError(error, 'maybe')
  }
  // The server says ROLLBACK when it was asked to commit a transaction in which a statement had failed.
  if (results.at(-1)?.command !== 'COMMIT') throw abortedError()
  return results
}

/** How many causes are looked through for the server's own error: query builders wrap it once or twice. */
const CAUSES = 5

function translate(error: unknown, { connection }: PostgresGround): unknown {
  if (isOnceError(error)) return error
  let cause: unknown = error
  for (let depth = 0; depth < CAUSES && cause instanceof Error; depth++, cause = cause.cause) {
    if (cause === connection.broken || isBusy(cause) || isSessionOver(cause) || isAborted(cause)) {
      return errors.storeError(cause, 'no')
    }
  }
  return error
}
