import type { Pool } from 'pg'
import type { PgClient, PgPool, PgQuery } from '../../../../src/ledger/stores/postgres/index.ts'
import { until } from '../../../../src/testing/until.ts'

/** Interleaves the sessions of several stores between named statements. */

/** A place where one statement waits. */
export interface Gate {
  /** Settles when the statement has come. */
  readonly reached: Promise<void>
  /** Resumes it; a call before it has stopped means that it will not stop. */
  open(): void
}

export interface GatedPool extends PgPool {
  /** The next statement that fits waits before it is sent. A gate serves one statement. */
  gate(pattern: RegExp): Gate
}

interface WaitingGate {
  readonly pattern: RegExp
  arrive(): Promise<void>
}

/** The same pool, for a store of its own. Every client of it stops at the gates. */
export function gatedPool(pool: Pool): GatedPool {
  const gates = new Set<WaitingGate>()
  const known = new WeakMap<PgClient, PgClient>()

  async function pass(text: string): Promise<void> {
    for (const gate of gates) {
      if (!gate.pattern.test(text)) continue
      gates.delete(gate)
      await gate.arrive()
    }
  }

  function gated(client: PgClient): PgClient {
    const found = known.get(client)
    if (found !== undefined) return found
    const query = async (query: PgQuery, values?: unknown[]) => {
      await pass(query.text)
      return values === undefined ? client.query(query) : client.query(query, values)
    }
    const made = new Proxy(client, {
      get(target, name) {
        if (name === 'query') return query
        const value: unknown = Reflect.get(target, name, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    known.set(client, made)
    return made
  }

  return {
    connect: async () => gated((await pool.connect()) as PgClient),
    on: (event: 'error' | 'connect', listener: (given: never) => void) => pool.on(event as 'error', listener as never),
    options: pool.options,
    gate(pattern) {
      const reached = Promise.withResolvers<void>()
      const opened = Promise.withResolvers<void>()
      const gate: WaitingGate = {
        pattern,
        arrive() {
          reached.resolve()
          return opened.promise
        },
      }
      gates.add(gate)
      return {
        reached: reached.promise,
        open() {
          gates.delete(gate)
          opened.resolve()
        },
      }
    },
  }
}

/** Until so many sessions of this database wait for a lock, in statements that contain the text. */
export async function untilLocked(pool: Pool, text: string, count = 1): Promise<void> {
  await until(`${count} statements with \`${text}\` wait for a lock`, async () => {
    const { rows } = await pool.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event_type = 'Lock' AND strpos(query, $1) > 0`,
      [text],
    )
    return rows[0]?.count === count
  })
}

/** Runs the work while a session of its own has run the statement, and commits after it. */
export async function whileHeld<T>(pool: Pool, statement: string, work: () => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    await client.query(statement)
    return await work()
  } finally {
    await client.query('COMMIT')
    client.release()
  }
}
