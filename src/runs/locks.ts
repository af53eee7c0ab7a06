import type { Script, SqlSeam, Statement } from '../ledger/store/sql.ts'
import { RUN_TOPIC } from './tables.ts'

/** Several runs in one transaction: in the order of their ids, as everywhere in this room. */
export function* lockRuns({ dialect }: SqlSeam, ids: readonly string[]): Script<void> {
  const lock = dialect.lock('for update')
  if (lock === '') return
  const these = `select id from ${dialect.recordsOf({ id: 'text' })}`
  yield {
    text: `select id from onceonly_runs where id in (${these}) order by id ${lock}`,
    values: [JSON.stringify(ids.map((id) => ({ id })))],
  }
}

/** Makes runs that wait due now. One that is held gets a mark, another one each time, which its worker will see. */
export function markDue(sql: SqlSeam, ids: readonly string[]): Statement {
  const { now, dialect } = sql
  // One that its queue has not let in waits for that, whatever comes.
  const mark = `case when state = 'queued' then due_at when worker is not null and due_at >= ${now} then due_at + 1 else ${now} end`
  return {
    text: `update onceonly_runs set due_at = ${mark}
      where id in (select id from ${dialect.recordsOf({ id: 'text' })}) and ended_at is null
      returning id, ${sql.wake(RUN_TOPIC)} as woken`,
    values: [JSON.stringify(ids.map((id) => ({ id })))],
  }
}
