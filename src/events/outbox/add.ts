import type { SqlSeam, SqlTx, SqlValue } from '../../ledger/store/sql.ts'
import type { Draft } from './message.ts'
import { lineOf } from './message.ts'

export interface Addition {
  readonly id: string
  /** The caller chose the id, so it may come again: with a retried command. */
  readonly given: boolean
  readonly draft: Draft
}

/** Adds a row inside the caller's transaction; false when its id was added before. */
export type Add = (tx: SqlTx, addition: Addition) => Promise<boolean>

/** A relay that sleeps is woken when this transaction commits. */
export const partitionTopic = (partition: number) => `outbox:${partition}`

export function createAdd(sql: SqlSeam): Add {
  return sql.dialect.writesInParts ? addInOneStatement(sql) : addStepByStep(sql)
}

const remember = (now: string) => `INSERT INTO onceonly_outbox_ids (id, added_at) VALUES (?, ${now})
  ON CONFLICT (id) DO NOTHING RETURNING id`

/** The counter's row stays locked until the caller commits: that is what makes the numbers gap-free, in commit order. */
const COUNT_ON = `ON CONFLICT (line) DO UPDATE
  SET number = onceonly_outbox_keys.number + 1, used_at = excluded.used_at RETURNING number`

const INSERT = `INSERT INTO onceonly_outbox_rows
  (partition, number, added_at, bytes, line, id, topic, key, headers, body)`

/** Key, headers and body as they are stored: a dead letter is found by its key. */
function written({ lookup, secret }: SqlSeam, { key, headers, body }: Draft): readonly SqlValue[] {
  return [lookup(key), secret(headers), secret(body)]
}

/** Where no statement writes several tables; on SQLite a step costs microseconds. */
function addStepByStep(sql: SqlSeam): Add {
  const { now, wake } = sql
  return async (tx, { id, given, draft }) => {
    if (given && (await tx.query(remember(now), [id])).length === 0) return false
    const { line, partition } = lineOf(draft.key, id)
    let number: number | null = null
    if (draft.key !== null) {
      const count = `INSERT INTO onceonly_outbox_keys (line, number, used_at) VALUES (?, 1, ${now}) ${COUNT_ON}`
      const [row] = await tx.query<{ number: number }>(count, [line])
      number = Number(row?.number)
    }
    const values = [partition, number, draft.bytes, line, id, draft.topic, ...written(sql, draft)]
    const woken = wake(partitionTopic(partition))
    await tx.query(`${INSERT} VALUES (?, ?, ${now}, ?, ?, ?, ?, ?, ?, ?) RETURNING ${woken}`, values)
    return true
  }
}

/**
 * One round trip inside the caller's transaction. Each part reads from the one before it, which fixes their order: an id
 * that is known takes no number, and a row takes its position after its key was locked.
 *
 * Notifying costs every commit of the database a common lock, so only a partition whose relay sleeps is notified.
 */
function addInOneStatement(sql: SqlSeam): Add {
  const { now } = sql
  const texts = new Map<string, string>()

  function textFor(given: boolean, keyed: boolean, partition: number): string {
    const name = `${given} ${keyed} ${partition}`
    const known = texts.get(name)
    if (known !== undefined) return known
    const from = given ? 'FROM remembered' : ''
    const parts = [
      ...(given ? [`remembered AS (${remember(now)})`] : []),
      ...(keyed
        ? [
            `counted AS (INSERT INTO onceonly_outbox_keys (line, number, used_at)
               SELECT CAST(? AS text), 1, ${now} ${from} ${COUNT_ON})`,
          ]
        : []),
      `added AS (${INSERT}
         SELECT ${partition}, ${keyed ? 'number' : 'CAST(NULL AS bigint)'}, ${now}, CAST(? AS integer), ?, ?, ?, ?, ?, ?
         ${keyed ? 'FROM counted' : from} RETURNING 1)`,
    ]
    const wakes = `EXISTS (SELECT 1 FROM onceonly_outbox_partitions WHERE partition = ${partition} AND listening = 1)`
    const text = `WITH ${parts.join(', ')} SELECT CASE WHEN ${wakes} THEN ${sql.wake(partitionTopic(partition))} END FROM added`
    texts.set(name, text)
    return text
  }

  return async (tx, { id, given, draft }) => {
    const { line, partition } = lineOf(draft.key, id)
    const { bytes, topic, key } = draft
    const values: SqlValue[] = [bytes, line, id, topic, ...written(sql, draft)]
    if (key !== null) values.unshift(line)
    if (given) values.unshift(id)
    return (await tx.query(textFor(given, key !== null, partition), values)).length > 0
  }
}
