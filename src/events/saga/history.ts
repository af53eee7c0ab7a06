import type { SqlSeam, SqlTx } from '../../ledger/store/sql.ts'
import { sagaLimits } from './limits.ts'
import type { Reaction } from './react.ts'

export type IgnoredWhy =
  /** The table says so. */
  | 'declared'
  /** The table says so, and there is no instance yet. */
  | 'no_instance'
  /** The instance has finished. */
  | 'terminal'
  /** The id was used before, and its instance is not remembered any more. */
  | 'late_after_ttl'
  /** A timeout that was unscheduled or replaced while it was on its way, or a delivery that came twice. */
  | 'stale'

interface Came {
  readonly id: string
  readonly event: string
  readonly messageId: string
  readonly state: string
}

/** What came, and what was done. */
export type Entry =
  | (Came & {
      readonly did: 'handled'
      readonly path: readonly string[]
      /** Messages by topic, so that a thousand commands are one line. */
      readonly emitted: readonly { readonly how: string; readonly topic: string; readonly count: number }[]
      readonly scheduled: readonly { readonly name: string; readonly dueAt: number }[]
      readonly unscheduled: readonly string[]
      readonly warnings: readonly string[]
    })
  | (Came & { readonly did: 'ignored'; readonly why: IgnoredWhy; readonly because: string | null })
  | (Came & { readonly did: 'deferred' })

export type SagaHistoryEntry = Entry & { readonly at: number }

export function handledEntry(came: Came, reaction: Reaction, now: number): Entry {
  const topics = new Map<string, { how: string; topic: string; count: number }>()
  for (const { how, topic } of reaction.emitted) {
    const known = topics.get(`${how} ${topic}`)
    if (known !== undefined) known.count++
    else if (topics.size < sagaLimits.topics) topics.set(`${how} ${topic}`, { how, topic, count: 1 })
  }
  const changes = [...reaction.timeouts].slice(0, sagaLimits.topics)
  return {
    ...came,
    did: 'handled',
    path: reaction.path,
    emitted: [...topics.values()],
    scheduled: changes.flatMap(([name, to]) => (to === null ? [] : [{ name, dueAt: now + to.afterMs }])),
    unscheduled: changes.flatMap(([name, to]) => (to === null ? [name] : [])),
    warnings: reaction.warnings,
  }
}

/** Of one saga: bounded per instance, and removed with it. */
export interface History {
  /** False when the instance no longer exists: a sweep removed it meanwhile. */
  add(tx: SqlTx, id: string, at: number, entry: Entry): Promise<boolean>
  /** Oldest first. */
  read(id: string): Promise<readonly SagaHistoryEntry[]>
}

export function createHistory(sql: SqlSeam, saga: string): History {
  const addText = addSql(sql)
  return {
    async add(tx, id, at, entry) {
      const added = await tx.query(addText, [at, sql.secret(JSON.stringify(entry)), saga, id])
      if (added.length === 0) return false
      await tx.query(
        `DELETE FROM onceonly_saga_history WHERE saga = ? AND id = ? AND seq <= (
           SELECT seq FROM onceonly_saga_history WHERE saga = ? AND id = ? ORDER BY seq DESC LIMIT 1 OFFSET ?
         )`,
        [saga, id, saga, id, sagaLimits.historyEntries],
      )
      return true
    },
    async read(id) {
      const rows = await sql.query<{ at: number | string; entry: string }>(
        'SELECT at, entry FROM onceonly_saga_history WHERE saga = ? AND id = ? ORDER BY seq',
        [saga, id],
      )
      return rows.map(({ at, entry }) => ({ at: Number(at), ...(JSON.parse(entry) as Entry) }))
    },
  }
}

/**
 * Only for an instance that is there. An event that is ignored changes no row of its own, so that nothing but this keeps
 * the sweep from removing the instance at the same time, and this entry would be left without it forever.
 */
function addSql({ dialect: { place, lock } }: SqlSeam): string {
  return `INSERT INTO onceonly_saga_history (saga, id, at, entry)
    SELECT saga, id, ${place('bigint')}, ${place('text')} FROM onceonly_saga_instances WHERE saga = ? AND id = ?
    ${lock('for key share')} RETURNING seq`
}
