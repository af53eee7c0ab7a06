import { OnceError } from '../../core/errors.ts'
import type { Deadline } from '../../store/deadline.ts'
import type { Held } from '../../store/sql/connection.ts'
import { borrowInTime, holdConnection } from '../../store/sql/connection.ts'
import type { PgClient, PgPool, PgQuery, PgResult } from './driver.ts'
import { errors, SECOND_CLIENT } from './errors.ts'
import { asText } from './statement.ts'

/** A client while the store holds it. */
export interface Connection extends Held {
  readonly client: PgClient
  query(query: PgQuery, values?: unknown[]): Promise<PgResult>
  /** Several statements without values, in one round trip; values arrive as text. */
  script(text: string): Promise<readonly PgResult[]>
  command(text: string): Promise<unknown>
}

function createConnection(client: PgClient): Connection {
  const held = holdConnection(client, {
    close: (reason) => client.release(reason),
    giveBack: () => client.release(),
  })
  const query = (given: PgQuery, values?: unknown[]) =>
    held.send(() => (values === undefined ? client.query(given) : client.query(given, values)))
  const script = async (text: string) => {
    const results: PgResult | readonly PgResult[] = await query({ text, types: asText })
    return isList(results) ? results : [results]
  }
  return Object.assign(held, { client, query, script, command: script })
}

function isList<T>(value: T | readonly T[]): value is readonly T[] {
  return Array.isArray(value)
}

export async function borrow(pool: PgPool, deadline: Deadline): Promise<Connection> {
  const startedAt = performance.now()
  return createConnection(
    await borrowInTime(
      () => pool.connect(),
      deadline,
      errors,
      (client) => client.release(),
      () => crowded(pool, startedAt),
    ),
  )
}

/** A transaction of the user that waits for this call would wait forever, so the advice names the way without a second client. */
function crowded({ options, totalCount = 0, idleCount = 0 }: PgPool, startedAt: number): OnceError | null {
  const most = options?.max
  if (most === undefined || totalCount < most || idleCount > 0) return null
  const all = most === 1 ? 'The only client of the pool was' : `All ${most} clients of the pool were`
  const text = `${all} in use for ${Math.round(performance.now() - startedAt)} ms.`
  return new OnceError('store_unavailable', text, { applied: 'no', next: SECOND_CLIENT })
}
