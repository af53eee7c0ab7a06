import type { Reason } from '../../store/life.ts'
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
  /** The last message of the transaction, sent outside of every savepoint. From here on everything else is refused. */
  end(text: string, why: Reason): Promise<readonly PgResult[]>
  /** How many savepoints are around the caller. */
  depth(): number
  /** Whether statements that were prepared before the effect are still there. */
  keepsPrepared(): boolean
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

/** A statement by which an effect removes prepared statements, perhaps all of them. */
const FORGETS = /\bdeallocate\b/i

export interface TxOptions {
  /** Puts our own tables first in the path, as at the beginning of the transaction. */
  readonly findTables: string
  /** The savepoint of the effect was opened by the message that began the transaction. */
  readonly partOpen: boolean
}

/** The name of every savepoint of ours: the innermost of a name hides the others. */
export const PART = 'onceonly_part'

/** What saves round trips with the savepoint of the effect, which is the first one and inside of no other. */
interface Part {
  /** It is open, and nothing was sent since then. */
  open: boolean
  /** A statement has failed, or was sent without us: only the server knows whether the transaction can continue. */
  doubtful: boolean
  /** It was left to COMMIT to release it. */
  left: boolean
}

export function createTx(connection: Connection, { findTables, partOpen }: TxOptions): PostgresOpenTx {
  const life = createLife()
  const turns = createTurns(life)
  const part: Part = { open: partOpen, doubtful: false, left: false }
  let prepared = true

  /** The path of a tenant may lead to the tables of another store: ours stay in front of it. */
  async function sendAlone(given: PgQuery, values?: unknown[]): Promise<PgResult> {
    part.open = false
    if (FORGETS.test(given.text)) prepared = false
    try {
      const result = await connection.query(given, values)
      if (findTables !== '' && MOVES_PATH.test(given.text)) await connection.script(findTables)
      return result
    } catch (error) {
      part.doubtful = true
      throw error
    }
  }

  const send = (given: PgQuery, values?: unknown[]) => turns.send(() => sendAlone(given, values))
  const savepoints = createSavepoints(stepsBy(send, part), life)
  const query = (given: PgQuery) => savepoints.inTurn(() => send(given))
  const nesting = createNesting(send)
  /** For what is sent without us. */
  const checkUnseen = () => {
    life.check()
    part.open = false
    part.doubtful = true
  }

  return {
    handle: {
      client: createTxClient({ client: connection.client, send, savepoints, nesting, check: checkUnseen }),
      query: async <Row = SqlRow>(text: string, values: readonly SqlValue[] = []) => {
        const control = transactionControlOf(text)
        if (control !== null) return rowsOf<Row>(await savepoints.inTurn((opened) => nesting(control, opened)))
        return rowsOf<Row>(await query({ text: numbered(text), values: [...values] }))
      },
      inSavepoint: savepoints.savepoint,
    },
    query,
    end: (text, why) =>
      savepoints.inTurn(() =>
        turns.send(() => {
          life.end(why)
          return connection.script(text)
        }),
      ),
    depth: savepoints.depth,
    keepsPrepared: () => prepared,
    outermost: savepoints.outermost,
    idle: turns.idle,
    close: (why) => life.end(why),
  }
}

function stepsBy(send: (query: PgQuery) => Promise<PgResult>, part: Part): SavepointSteps {
  const undo = `ROLLBACK TO SAVEPOINT ${PART}; RELEASE SAVEPOINT ${PART}`
  return {
    open: async () => {
      if (!part.open) await send({ text: `SAVEPOINT ${PART}` })
      part.open = false
    },
    keep: async (depth) => {
      // Nothing around it is ever undone alone, so that COMMIT may release it. Only once: open savepoints add up.
      if (depth === 1 && !part.doubtful && !part.left) {
        part.left = true
        return
      }
      try {
        await send({ text: `RELEASE SAVEPOINT ${PART}` })
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
