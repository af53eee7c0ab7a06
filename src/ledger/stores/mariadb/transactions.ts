import { isOnceError, OnceError } from '../../core/errors.ts'
import { SECOND } from '../../core/limits.ts'
import { createLife } from '../../store/life.ts'
import type { Transactions } from '../../store/port.ts'
import { createSavepoints } from '../../store/savepoints.ts'
import type { Calls } from '../../store/sql/calls.ts'
import { rollBack } from '../../store/sql/connection.ts'
import { answerUnchanged } from '../../store/sql/decide.ts'
import { unfit } from '../../store/sql/fit.ts'
import type { TableQuery } from '../../store/sql/tables.ts'
import type { Ground, OpenTx } from '../../store/sql/transactions.ts'
import { createServerTransactions, createTurns, runningTwin } from '../../store/sql/transactions.ts'
import type { SqlRow, SqlTx, SqlValue } from '../../store/sql.ts'
import { ROUNDS } from './claims.ts'
import type { Connection } from './connection.ts'
import { borrow, ISOLATION } from './connection.ts'
import { decideRound, readRecords } from './decide.ts'
import type { MariadbPool } from './driver.ts'
import { errors, isBusy, isLockTimeout, isRolledBack, isSessionOver } from './errors.ts'
import type { Watchers } from './watch.ts'

/** What an effect holds inside a transaction on MariaDB. */
export type MariadbTx = SqlTx

interface Open extends OpenTx<MariadbTx> {
  readonly query: TableQuery
}

/** Transactions that the server undid as a whole, and why. */
const undone = new WeakMap<Connection, OnceError>()

/** The server ends a transaction whose process was paused or lost its network; a living one keeps its own deadline. */
const SERVER_GRACE_MS = SECOND

const seconds = (ms: number) => Math.max(1, Math.ceil(ms / 1_000))

export function createTransactions(
  pool: MariadbPool,
  calls: Calls<Connection>,
  watchers: Watchers,
): Transactions<MariadbTx> {
  const underWay = new Set<string>()
  const transactions = createServerTransactions<Connection, MariadbTx, Open>(calls, {
    errors,
    borrow: (deadline) => borrow(pool, deadline),
    begin: (ground) => begin(calls, ground),
    open: ({ connection }) => createTx(connection),
    apply: async ({ query }, request, woken) => {
      const refused = unfit(request)
      if (refused !== null) throw refused
      const [same] = await answerUnchanged(readRecords, query, [request])
      if (same !== null && same !== undefined) return same
      for (let round = 0; round < ROUNDS; round++) {
        const { decided, woken: some } = await decideRound(query, [request], false)
        woken.push(...some)
        const [answer] = decided
        if (typeof answer === 'object') return answer
      }
      throw new OnceError('store_busy', 'Others kept inserting and removing this record.')
    },
    commit,
    undo: async ({ connection }) => {
      if (connection.broken !== null) return null
      const lostIt = undone.has(connection) || (await isInTransaction(connection)) ? null : lost()
      await rollBack(connection)
      await restore(connection)
      return lostIt
    },
    translate,
    committed: async (connection, woken) => {
      await watchers.committed(connection, woken)
      await restore(connection)
    },
  })
  return {
    run: async (work, call) => {
      const twin = call.refuseTwinOf
      // Only this process's transactions are known; one of another process is waited for.
      if (twin !== null && underWay.has(twin)) throw runningTwin()
      if (twin !== null) underWay.add(twin)
      try {
        return await transactions.run(work, call)
      } finally {
        if (twin !== null) underWay.delete(twin)
      }
    },
  }
}

/** The settings of the session are the user's: they are put back when the transaction is over. */
const SAVE =
  'SET @onceonly_idle = @@SESSION.idle_transaction_timeout, @onceonly_lock = @@SESSION.innodb_lock_wait_timeout'
const RESTORE =
  'SET SESSION idle_transaction_timeout = @onceonly_idle, SESSION innodb_lock_wait_timeout = @onceonly_lock'

async function begin({ fault }: Calls<Connection>, { connection, call }: Ground<Connection>): Promise<void> {
  const idle = seconds(call.timeoutMs + SERVER_GRACE_MS)
  const lock = seconds(call.lockMs)
  try {
    await connection.query(
      `${SAVE}, SESSION idle_transaction_timeout = ${idle}, SESSION innodb_lock_wait_timeout = ${lock}`,
    )
    await connection.query(ISOLATION)
    await connection.query('START TRANSACTION READ WRITE')
  } catch (error) {
    connection.destroy(error as Error)
    throw fault(error, 'no')
  }
}

async function restore(connection: Connection): Promise<void> {
  if (connection.broken !== null) return
  await connection.query(RESTORE).catch((error: unknown) => connection.destroy(error as Error))
}

async function isInTransaction(connection: Connection): Promise<boolean> {
  try {
    const [row] = await connection.query('SELECT @@in_transaction AS inside')
    return Number(row?.['inside']) === 1
  } catch {
    return true
  }
}

async function commit(ground: Ground<Connection>): Promise<void> {
  const { connection } = ground
  if (connection.broken !== null) throw errors.storeError(connection.broken, 'no')
  const fault = undone.get(connection)
  if (fault !== undefined) throw fault
  // A statement that commits by itself, in a trigger or a procedure, took our part with it.
  if (!(await isInTransaction(connection))) {
    connection.destroy(lost())
    throw lost()
  }
  ground.applied = 'maybe'
  try {
    await connection.query('COMMIT')
  } catch (error) {
    if (isBusy(error)) {
      await rollBack(connection)
      throw errors.storeError(error, 'no')
    }
    connection.destroy(error as Error)
    throw errors.storeError(error, 'maybe')
  }
}

function lost(): OnceError {
  return new OnceError('transaction_lost', 'The transaction ended while its effect ran.')
}

function translate(error: unknown, { connection }: Ground<Connection>): unknown {
  if (isOnceError(error)) return error
  return error === connection.broken || isBusy(error) || isSessionOver(error) ? errors.storeError(error, 'no') : error
}

/** What else there is commits the transaction by itself (CREATE, ALTER, LOCK TABLES, …), or ends it. */
const MAY_RUN =
  /^(?:\s|\(|--[^\n]*(?:\n|$)|#[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)*(?:select|insert|update|delete|replace|with|values|explain|show)\b/i

function createTx(connection: Connection): Open {
  const life = createLife()
  const turns = createTurns(life)

  const send = (text: string, values?: readonly SqlValue[], query = connection.query) =>
    turns.send(async () => {
      try {
        return await query(text, values)
      } catch (error) {
        // The next statement would be on its own, outside of any transaction.
        if (isRolledBack(error) || (isLockTimeout(error) && !(await isInTransaction(connection)))) {
          const fault = errors.storeError(error, 'no')
          undone.set(connection, fault)
          life.end(fault)
        }
        throw error
      }
    })

  const savepoints = createSavepoints(
    {
      open: async () => void (await send('SAVEPOINT onceonly_part')),
      keep: async () => void (await send('RELEASE SAVEPOINT onceonly_part')),
      // A connection that was lost has undone it already, and the first error says more than the second.
      undo: async () => {
        await send('ROLLBACK TO SAVEPOINT onceonly_part').catch(() => undefined)
        await send('RELEASE SAVEPOINT onceonly_part').catch(() => undefined)
      },
    },
    life,
  )
  const query: TableQuery = (text, values) => savepoints.inTurn(() => send(text, values))
  return {
    handle: {
      query: async <Row = SqlRow>(text: string, values: readonly SqlValue[] = []) => {
        if (!MAY_RUN.test(text)) throw notInside(text)
        return (await savepoints.inTurn(() => send(text, values, connection.effectQuery))) as readonly Row[]
      },
      inSavepoint: savepoints.savepoint,
    },
    query,
    outermost: savepoints.outermost,
    idle: turns.idle,
    close: (why) => life.end(why),
  }
}

function notInside(text: string): OnceError {
  const word = /\w+/.exec(text)?.[0]?.toUpperCase() ?? text
  return new OnceError(
    'bad_option',
    `\`${word}\` is not allowed in a transaction: on MariaDB it would end it. Use \`inSavepoint\` to undo a part.`,
  )
}
