import { createLife } from '../../store/life.ts'
import type { SavepointSteps } from '../../store/savepoints.ts'
import { createSavepoints } from '../../store/savepoints.ts'
import type { OpenTx } from '../../store/sql/transactions.ts'
import { createTurns } from '../../store/sql/transactions.ts'
import type { SqlRow, SqlTx, SqlValue } from '../../store/sql.ts'
import { numberPlaceholders, transactionControlOf } from '../../store/sql-text.ts'
import { createTxClient } from './client.ts'
import type { Connection } from './connection.ts'
import type { PgClient, PgQuery, PgResult } from './driver.ts'
import { abortedError, isAborted } from './errors.ts'
import { createNesting } from './nesting.ts'

/**
 * What an effect holds inside a transaction. `client` is for query builders: BEGIN, COMMIT, ROLLBACK and savepoints that
 * they send are parts of this transaction, one inside the other. Await one nested transaction before you begin the next.
 */
export interface PostgresTx extends SqlTx {
  readonly client: PgClient
}

/** An open transaction, as the store sees it. */
export interface PostgresOpenTx extends OpenTx<PostgresTx> {
  /** One statement after the other, in the order of the calls, except that none gets into a savepoint of others. */
  query(query: PgQuery): Promise<PgResult>
}

/** An application has few texts; one that builds them from values must not fill the memory. */
const TEXTS = 1_000
const texts = new Map<string, string>()

/** `?` as `$1`, converted once for each text. */
export function numbered(text: string): string {
  const known = texts.get(text)
  if (known !== undefined) return known
  const converted = numberPlaceholders(text)
  if (texts.size >= TEXTS) texts.clear()
  texts.set(text, converted)
  return converted
}

export function rowsOf<Row>(result: PgResult | readonly PgResult[]): readonly Row[] {
  const last = Array.isArray(result) ? (result as readonly PgResult[]).at(-1) : (result as PgResult)
  return (last?.rows ?? []) as readonly Row[]
}

/** Statements by which an effect changes where names lead: `SET LOCAL search_path`, `set_config('search_path', …)`. */
const MOVES_PATH = /\b(?:set|set_config|reset)\b.*\bsearch_path\b/is

/** `findTables` puts our own tables first in the path, as at the beginning of the transaction. */
export function createTx(connection: Connection, findTables: string): PostgresOpenTx {
  const life = createLife()
  const turns = createTurns(life)

  /** The path of a tenant may lead to the tables of another store: ours stay in front of it. */
  async function sendAlone(given: PgQuery, values?: unknown[]): Promise<PgResult> {
    const result = await connection.query(given, values)
    if (findTables !== '' && MOVES_PATH.test(given.text)) await connection.script(findTables)
    return result
  }

  const send = (given: PgQuery, values?: unknown[]) => turns.send(() => sendAlone(given, values))
  const savepoints = createSavepoints(stepsBy(send), life)
  const query = (given: PgQuery) => savepoints.inTurn(() => send(given))
  const nesting = createNesting(send)

  return {
    handle: {
      client: createTxClient({ client: connection.client, send, savepoints, nesting, check: life.check }),
      query: async <Row = SqlRow>(text: string, values: readonly SqlValue[] = []) => {
        const control = transactionControlOf(text)
        if (control !== null) return rowsOf<Row>(await savepoints.inTurn((opened) => nesting(control, opened)))
        return rowsOf<Row>(await query({ text: numbered(text), values: [...values] }))
      },
      inSavepoint: savepoints.savepoint,
    },
    query,
    outermost: savepoints.outermost,
    idle: turns.idle,
    close: (why) => life.end(why),
  }
}

/** One name for all, because the innermost of a name hides the others. */
function stepsBy(send: (query: PgQuery) => Promise<PgResult>): SavepointSteps {
  const undo = 'ROLLBACK TO SAVEPOINT onceonly_part; RELEASE SAVEPOINT onceonly_part'
  return {
    open: async () => void (await send({ text: 'SAVEPOINT onceonly_part' })),
    keep: async () => {
      try {
        await send({ text: 'RELEASE SAVEPOINT onceonly_part' })
      } catch (error) {
        if (!isAborted(error)) throw error
        // The work returned, but one of its statements had failed, and with it everything that it wrote.
        await send({ text: undo })
        throw abortedError(error)
      }
    },
    // A connection that was lost has undone it already, and the first error says more than the second.
    undo: async () => void (await send({ text: undo }).catch(() => undefined)),
  }
}
