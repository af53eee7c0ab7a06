import type { OnceError } from '../../core/errors.ts'
import type { SqlRow, SqlTx, SqlValue } from '../../store/sql.ts'
import { numberPlaceholders } from '../../store/sql.ts'
import type { Connection } from './connection.ts'
import type { PgClient, PgQuery, PgResult } from './driver.ts'
import { abortedError, isAborted } from './errors.ts'

/** What an effect holds inside a transaction. `client` is the driver's own, for query builders that want it. */
export interface PostgresTx extends SqlTx {
  readonly client: PgClient
}

/** An open transaction, as the store sees it. */
export interface OpenTx {
  readonly handle: PostgresTx
  /** One statement after the other, in the order of the calls, whoever calls. */
  query(query: PgQuery): Promise<PgResult>
  /** Settles when no statement is under way. */
  idle(): Promise<void>
  /** From here on everything is refused, also what still waits for its turn. */
  close(why: OnceError): void
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

export function createTx(connection: Connection): OpenTx {
  let turn: Promise<unknown> = Promise.resolve()
  let over: OnceError | null = null
  let savepoints = 0

  /** In turn, because the driver would only queue them too, and warn about it. */
  function query(given: PgQuery): Promise<PgResult> {
    if (over !== null) return Promise.reject(over)
    const mine = turn.then(() => {
      if (over !== null) throw over
      return connection.query(given)
    })
    turn = mine.catch(() => undefined)
    return mine
  }

  async function inSavepoint<T>(work: () => Promise<T>): Promise<T> {
    savepoints += 1
    const name = `onceonly_${savepoints}`
    const undo = `ROLLBACK TO SAVEPOINT ${name}; RELEASE SAVEPOINT ${name}`
    await query({ text: `SAVEPOINT ${name}` })
    let result: T
    try {
      result = await work()
    } catch (error) {
      // A connection that was lost has undone it already, and the first error says more than the second.
      await query({ text: undo }).catch(() => undefined)
      throw error
    }
    try {
      await query({ text: `RELEASE SAVEPOINT ${name}` })
    } catch (error) {
      if (!isAborted(error)) throw error
      // The work returned, but one of its statements had failed, and with it everything that it wrote.
      await query({ text: undo })
      throw abortedError(error)
    }
    return result
  }

  return {
    handle: {
      client: connection.client,
      query: async <Row = SqlRow>(text: string, values: readonly SqlValue[] = []) =>
        rowsOf<Row>(await query({ text: numbered(text), values: [...values] })),
      inSavepoint,
    },
    query,
    idle: async () => {
      await turn
    },
    close: (why) => {
      over ??= why
    },
  }
}
