import type { OnceError } from '../../core/errors.ts'
import { causesOf, lostTransaction } from '../../store/foreign.ts'
import type { ForeignParts } from '../../store/foreign-tx.ts'
import { createForeignParts } from '../../store/foreign-tx.ts'
import { createLife } from '../../store/life.ts'
import type { OrmTransactions, OrmValue } from '../../store/orm.ts'
import type { SavepointSteps } from '../../store/savepoints.ts'
import { createTurns } from '../../store/sql/transactions.ts'
import { abortedError, isAborted, sqlErrorOf } from './errors.ts'
import { ormValue, textOf, withColumnsOf } from './foreign-rows.ts'
import type { Executor, TextRow } from './statement.ts'
import { numbered, PART } from './tx.ts'

/** A transaction of an ORM, as the store uses it: nothing but statements on its connection. */
export interface ForeignTx extends ForeignParts {
  /** For the statements of the store. */
  readonly on: Executor
  rows(text: string, values?: readonly unknown[]): Promise<readonly TextRow[]>
  /** Set once its savepoint was gone: other code has ended the transaction. */
  readonly lost: OnceError | null
  /** Why a part could not even be undone: the connection is gone. */
  readonly broken: unknown
}

/** The server's error behind what an ORM throws; null when the server did not answer. */
export function serverErrorIn(orm: Pick<OrmTransactions<never>, 'serverError'>, error: unknown): Error | null {
  const found = causesOf(error).find((cause) => sqlErrorOf(cause) !== null)
  if (found !== undefined) return found as Error
  const fault = orm.serverError?.(error) ?? null
  if (fault === null) return null
  return Object.assign(new Error(fault.message, { cause: error }), { code: fault.code, severity: 'ERROR' })
}

/** How drivers say that a connection is gone: postgres.js, the system, and `pg`. */
const LOST_CODES = /^(CONNECTION_(CLOSED|ENDED|DESTROYED)|ECONNRESET|EPIPE|ETIMEDOUT|ECONNABORTED)$/
const LOST_MESSAGES =
  /^(Connection terminated|Connection ended|Client has encountered a connection error|Server has closed)/

/** Known by the error alone: some drivers cannot bear another statement on a connection that is gone. */
export function saysConnectionLost(error: unknown): boolean {
  return causesOf(error).some((cause) => {
    const { code, message } = cause as { readonly code?: unknown; readonly message?: unknown }
    return (typeof code === 'string' && LOST_CODES.test(code)) || LOST_MESSAGES.test(String(message))
  })
}

/** The transaction was ended by other code, or the savepoint was. */
const GONE = /^(25P01|3B001)$/

export function isGone(error: unknown): boolean {
  return GONE.test(sqlErrorOf(error)?.code ?? '')
}

/** One for each handle, so that everything on its connection takes turns. */
export function createForeignTx<Handle>(orm: OrmTransactions<Handle>, handle: Handle): ForeignTx {
  const life = createLife()
  const turns = createTurns(life)
  let lost: OnceError | null = null
  let broken: unknown = null

  const send = (text: string, values: readonly OrmValue[] = []) =>
    turns.send(async () => {
      try {
        return withColumnsOf(text, await orm.query(handle, text, values))
      } catch (error) {
        throw serverErrorIn(orm, error) ?? error
      }
    })

  function isLost(error: unknown): boolean {
    if (isGone(error)) return true
    return sqlErrorOf(error) === null && !orm.isTransaction(handle)
  }

  async function undo(): Promise<void> {
    await send(`ROLLBACK TO SAVEPOINT ${PART}`)
    await send(`RELEASE SAVEPOINT ${PART}`)
  }

  const steps: SavepointSteps = {
    open: async () => {
      await send(`SAVEPOINT ${PART}`)
    },
    keep: async () => {
      try {
        await send(`RELEASE SAVEPOINT ${PART}`)
      } catch (error) {
        if (isLost(error)) throw (lost ??= lostTransaction(error))
        if (!isAborted(error)) throw error
        // The work returned, but one of its statements had failed, and with it everything that it wrote.
        await undo()
        throw abortedError(error)
      }
    },
    undo: async () => {
      try {
        await undo()
      } catch (error) {
        if (isLost(error)) lost ??= lostTransaction(error)
        else if (sqlErrorOf(error) === null) broken ??= error
      }
    },
  }
  const { parts, inTurn } = createForeignParts(orm, { life, turns, steps }, (text, values) =>
    send(numbered(text), values.map(ormValue)),
  )
  const rows = async (text: string, values: readonly unknown[] = []) =>
    (await inTurn(() => send(text, values.map(ormValue)))).map(textOf)

  return {
    ...parts,
    on: { run: ({ text }, values) => rows(text, values) },
    rows,
    get lost() {
      return lost
    },
    get broken() {
      return broken
    },
  }
}
