import { DAY } from 'onceonly'
import type { Admin } from 'onceonly/admin'
import type { Sweep } from '../workspaces/retention.ts'

const nothing = { removed: 0, more: false }

/** Removes lines of the audit of operators a long time after they were written; its table refuses any other removal. */
export function operatorAuditSweep({ audit }: Pick<Admin, 'audit'>, retainDays: number): Sweep {
  const agoMs = retainDays * DAY
  return {
    name: 'audit of operators',
    // In the order in which they were written: so the first one is the oldest.
    from: { text: 'select at from onceonly_operator_audit order by seq limit 1', agoMs },
    step: async () => (await audit?.sweep(agoMs)) ?? nothing,
  }
}
