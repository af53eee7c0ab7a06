import { OnceError } from '../../core/errors.ts'
import type { Savepoints } from '../../store/savepoints.ts'
import { transactionControlOf } from '../../store/sql-text.ts'
import type { PgClient, PgQuery, PgResult } from './driver.ts'
import type { Nesting, Send } from './nesting.ts'

interface ClientParts {
  readonly client: PgClient
  readonly send: Send
  readonly savepoints: Savepoints
  readonly nesting: Nesting
  /** Throws once the transaction is over. */
  check(): void
}

/** For drivers' own objects, such as cursors and COPY: they are sent as they are, and answered by themselves. */
interface Submittable {
  readonly text?: string
  submit(connection: unknown): unknown
}

type Callback = (error: unknown, result?: PgResult) => void

/**
 * The client as query builders get it. It runs their statements in turn with all others, takes what begins and ends a
 * transaction for a part of ours, and cannot be given back to the pool.
 */
export function createTxClient(parts: ClientParts): PgClient {
  const { client, send, savepoints, nesting, check } = parts

  async function run(query: PgQuery, values: unknown[] | undefined): Promise<PgResult> {
    const control = transactionControlOf(query.text)
    return savepoints.inTurn((opened) => (control === null ? send(query, values) : nesting(control, opened)))
  }

  function query(given: string | PgQuery | Submittable, ...others: readonly unknown[]): unknown {
    if (typeof given !== 'string' && 'submit' in given) {
      check()
      if (given.text !== undefined && transactionControlOf(given.text) !== null) {
        throw new OnceError('bad_option', 'A statement that begins or ends a transaction must be sent as text.')
      }
      return client.query(given as unknown as PgQuery)
    }
    const values = others.find((other) => Array.isArray(other)) as unknown[] | undefined
    const callback = others.find((other) => typeof other === 'function') as Callback | undefined
    const answer = typeof given === 'string' ? run({ text: given }, values) : run(given, values)
    if (callback === undefined) return answer
    // Outside of the promise, so that an error that it throws is the caller's.
    answer.then(
      (result) => process.nextTick(callback, null, result),
      (error: unknown) => process.nextTick(callback, error),
    )
    return undefined
  }

  const own: Readonly<Record<string | symbol, unknown>> = {
    query,
    release: () => undefined,
    connect: async () => undefined,
    end: async () => undefined,
  }
  return new Proxy(client, {
    get(target, name) {
      if (Object.hasOwn(own, name)) return own[name]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
