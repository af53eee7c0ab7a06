import type { OnceError } from '../../core/errors.ts'
import { causesOf, lostTransaction } from '../../store/foreign.ts'
import type { ForeignParts } from '../../store/foreign-tx.ts'
import { createForeignParts } from '../../store/foreign-tx.ts'
import { createLife } from '../../store/life.ts'
import type { OrmTransactions } from '../../store/orm.ts'
import type { SavepointSteps } from '../../store/savepoints.ts'
import { createTurns } from '../../store/sql/transactions.ts'
import type { SqlRow } from '../../store/sql.ts'
import type { Clock } from './clock.ts'
import { nowOf } from './clock.ts'
import { NOW_SQL, WAKE_SQL } from './connection.ts'
import type { Send } from './foreign-decide.ts'
import { readMeta } from './foreign-decide.ts'
import { bindable } from './statements.ts'

/** A transaction of an ORM, as the store uses it: nothing but statements on its connection. */
export interface ForeignTx extends ForeignParts {
  /** Statements of the store, with no other one in between. */
  together<T>(work: (send: Send) => Promise<T>): Promise<T>
  /** Topics that its statements have woken. */
  readonly woken: Set<string>
  /** Set once its savepoint was gone: other code has ended the transaction. */
  readonly lost: OnceError | null
}

const PART = 'onceonly_part'
const GONE = /^(no such savepoint|cannot \w+ - no transaction is active)/

/** SQLite's error behind what an ORM throws; null when it is none of SQLite's. */
export function sqliteErrorIn(error: unknown): Error | null {
  const found = causesOf(error).find((cause) => {
    const { errcode, code } = cause as { readonly errcode?: unknown; readonly code?: unknown }
    return typeof errcode === 'number' || (typeof code === 'string' && code.startsWith('SQLITE_'))
  })
  return (found as Error | undefined) ?? null
}

export function isGone(error: unknown): boolean {
  return GONE.test(sqliteErrorIn(error)?.message ?? '')
}

/** ORMs may give whole numbers as `bigint`. */
function plain(row: SqlRow): SqlRow {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value]),
  )
}

/** One for each handle, so that everything on its connection takes turns. */
export function createForeignTx<Handle>(orm: OrmTransactions<Handle>, handle: Handle, clock: Clock): ForeignTx {
  const life = createLife()
  const turns = createTurns(life)
  const woken = new Set<string>()
  let lost: OnceError | null = null

  const send: Send = async (text, values = []) => (await orm.query(handle, text, values)).map(plain)
  const alone = (text: string) => turns.send(() => send(text))

  /** The connection is the ORM's, and has no functions of ours. */
  async function withoutFunctions(text: string): Promise<string> {
    const noted = text.replaceAll(WAKE_SQL, (_, topic: string) => {
      woken.add(topic)
      return 'NULL'
    })
    return noted.includes(NOW_SQL) ? noted.replaceAll(NOW_SQL, String(nowOf(await readMeta(send), clock))) : noted
  }

  const steps: SavepointSteps = {
    open: async () => void (await alone(`SAVEPOINT ${PART}`)),
    keep: async () => {
      try {
        await alone(`RELEASE ${PART}`)
      } catch (error) {
        // An ORM that knows it sends no more statements.
        if (isGone(error) || !orm.isTransaction(handle)) throw (lost ??= lostTransaction(error))
        throw error
      }
    },
    undo: async () => {
      try {
        await alone(`ROLLBACK TO ${PART}`)
        await alone(`RELEASE ${PART}`)
      } catch (error) {
        lost ??= lostTransaction(error)
      }
    },
  }
  const { parts, inTurn } = createForeignParts(orm, { life, turns, steps }, (text, values) =>
    turns.send(async () => send(await withoutFunctions(text), values.map(bindable))),
  )

  return {
    ...parts,
    together: (work) => inTurn(() => turns.send(() => work(send))),
    woken,
    get lost() {
      return lost
    },
  }
}
