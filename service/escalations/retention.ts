import { DAY } from 'onceonly'
import type { Base } from '../store.ts'
import type { Sweep } from '../workspaces/retention.ts'

/** Lines that one step removes. */
const LINES = 500

/** When the oldest line was written: its time is a text, which sorts as the times do. */
const oldest = {
  sqlite: 'select unixepoch(min(at)) * 1000 from escalation_audit',
  postgres: 'select (extract(epoch from min(at)::timestamptz) * 1000)::bigint from escalation_audit',
}

/** Removes lines of the business audit a long time after they were written. */
export function auditSweep({ sql, now }: Base, retainDays: number): Sweep {
  const agoMs = retainDays * DAY
  return {
    name: 'audit of escalations',
    from: { text: oldest[sql.dialect.name], agoMs },
    async step() {
      const before = new Date((await now()) - agoMs).toISOString()
      const gone = await sql.query(
        `delete from escalation_audit where id in
          (select id from escalation_audit where at <= ? order by at limit ?) returning id`,
        [before, LINES],
      )
      return { removed: gone.length, more: gone.length === LINES }
    },
  }
}
