import { limits } from '../../ledger/core/limits.ts'
import { hasEnded } from '../../ledger/store/ended.ts'
import type { SqlSeam } from '../../ledger/store/sql.ts'
import type { RelayParts } from './parts.ts'

/** Removes what is past its end, in bounded steps. Any relay may do it. */
export interface Sweeper {
  round(): Promise<number>
}

export function createSweeper(sql: SqlSeam, { settings, leases, emit }: RelayParts): Sweeper {
  const { now } = sql
  /** Where the walk over the counters continues; the empty text is before all of them. */
  let after = ''

  async function ids(): Promise<number> {
    const old = `SELECT id FROM onceonly_outbox_ids WHERE added_at <= (SELECT ${now}) - ? ORDER BY added_at LIMIT ?`
    const text = `DELETE FROM onceonly_outbox_ids WHERE id IN (${old}) RETURNING id`
    return (await sql.query(text, [settings.idMs, limits.sweepRows])).length
  }

  /**
   * A counter goes when its key was not used for long and none of its messages is still here: a row was added when its
   * key was used, so a key that was last used before the oldest row has none. Asked again while the row is locked: a
   * transaction that counts meanwhile keeps it.
   */
  async function keys(idleMs: number): Promise<{ readonly removed: number; readonly more: boolean }> {
    const some = 'SELECT line FROM onceonly_outbox_keys WHERE line > ? ORDER BY line LIMIT ?'
    const looked = await sql.query<{ line: string }>(some, [after, limits.sweepRows])
    const last = looked.at(-1)?.line
    if (last === undefined) {
      after = ''
      return { removed: 0, more: false }
    }
    const oldest = 'SELECT added_at FROM onceonly_outbox_rows ORDER BY added_at LIMIT 1'
    const text = `DELETE FROM onceonly_outbox_keys WHERE line > ? AND line <= ? AND used_at <= ${now} - ?
        AND used_at < coalesce((${oldest}), ${Number.MAX_SAFE_INTEGER})
        AND NOT EXISTS (SELECT 1 FROM onceonly_outbox_dead AS d WHERE d.line = onceonly_outbox_keys.line)
      RETURNING line`
    const removed = (await sql.query(text, [after, last, idleMs])).length
    after = last
    return { removed, more: true }
  }

  return {
    async round() {
      let removed = 0
      const anyIds = await hasEnded(sql, { table: 'onceonly_outbox_ids', column: 'added_at' }, settings.idMs)
      for (let step = 0; anyIds && step < limits.sweepSteps; step++) {
        const gone = await ids()
        removed += gone
        if (gone < limits.sweepRows) break
      }
      for (let step = 0; settings.forgetKeysMs !== null && step < limits.sweepSteps; step++) {
        const swept = await keys(settings.forgetKeysMs)
        removed += swept.removed
        if (!swept.more) break
      }
      await leases.forget()
      if (removed > 0) emit({ kind: 'swept', removed })
      return removed
    },
  }
}
