import { hasEnded } from '../../ledger/store/ended.ts'
import type { SqlStore } from '../../ledger/store/port.ts'
import type { SqlTx } from '../../ledger/store/sql.ts'
import { ownTransaction } from '../../ledger/store/wing-tables.ts'
import type { SagaListener } from './events.ts'
import { sagaLimits } from './limits.ts'
import type { Machine } from './machine.ts'
import { INITIAL } from './machine.ts'

/** Removes tombstones whose time is over, and what waited for instances that never began. In bounded steps. */
export interface Sweeper {
  round(): Promise<number>
}

export function createSweeper(machine: Machine, store: SqlStore, emit: SagaListener): Sweeper {
  const saga = machine.name

  async function step(): Promise<number> {
    const gone = await ownTransaction(store, (tx) => remove(tx, saga, store.sql.now))
    for (const { id, state, deferred } of gone) {
      if (state === INITIAL && deferred > 0) emit({ kind: 'expired', saga, id, deferred })
    }
    return gone.length
  }

  return {
    async round() {
      const own = { table: 'onceonly_saga_instances', column: 'ends_at', where: 'saga = ?', values: [saga] }
      if (!(await hasEnded(store.sql, own))) return 0
      let removed = 0
      for (let steps = 0; steps < sagaLimits.sweepSteps; steps++) {
        const gone = await step()
        removed += gone
        if (gone < sagaLimits.sweepRows) break
      }
      if (removed > 0) emit({ kind: 'swept', saga, removed })
      return removed
    },
  }
}

interface Gone {
  readonly id: string
  readonly state: string
  readonly deferred: number
}

/** The instance first: its row lock blocks writers that would still add something to it. */
async function remove(tx: SqlTx, saga: string, now: string): Promise<readonly Gone[]> {
  const gone = await tx.query<{ id: string; state: string }>(
    `DELETE FROM onceonly_saga_instances WHERE saga = ? AND id IN (
       SELECT id FROM onceonly_saga_instances WHERE saga = ? AND ends_at <= (SELECT ${now}) ORDER BY ends_at LIMIT ?
     ) AND ends_at <= (SELECT ${now}) RETURNING id, state`,
    [saga, saga, sagaLimits.sweepRows],
  )
  if (gone.length === 0) return []
  const ids = gone.map(({ id }) => id)
  const among = `saga = ? AND id IN (${ids.map(() => '?').join(', ')})`
  const waited = await tx.query<{ id: string }>(`DELETE FROM onceonly_saga_pending WHERE ${among} RETURNING id`, [
    saga,
    ...ids,
  ])
  await tx.query(`DELETE FROM onceonly_saga_history WHERE ${among}`, [saga, ...ids])
  return gone.map(({ id, state }) => ({ id, state, deferred: waited.filter((row) => row.id === id).length }))
}
