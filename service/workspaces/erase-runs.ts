import type { Admin, ErasedOwner } from 'onceonly/admin'
import { scopeOf } from '../outreach/run-scope.ts'
import type { Base } from '../store.ts'
import { mentions, ROWS, type Selection } from './erase-rows.ts'

/** The runs of an owner, with all that belongs to them. */
export interface RunRemoval {
  /** @param leads of the owner: the run of a campaign names its lead only */
  of(owner: ErasedOwner, leads: Selection): Promise<readonly string[]>
  remove(id: string): Promise<void>
}

const BELONGING = ['onceonly_run_steps', 'onceonly_run_signals', 'onceonly_run_attributes']

export function createRunRemoval({ sql }: Base, { runs }: Pick<Admin, 'runs'>): RunRemoval {
  return {
    async of(owner, leads) {
      const [where, values] =
        owner.tenant === undefined ? ['1 = 1', []] : ['id >= ? and id < ?', boundsOf(owner.tenant)]
      const found: string[] = []
      for (let after = ''; ; ) {
        const rows = await sql.query<{ id: string; input: string; is_own: unknown }>(
          `select id, input, ${isOf(leads)} as is_own from onceonly_runs where ${where} and id > ? order by id limit ${ROWS}`,
          [...leads.values, ...values, after],
        )
        for (const { id, input, is_own } of rows) {
          const isOwn = owner.kind === 'workspace' || Number(is_own) === 1
          if (isOwn || mentions(JSON.parse(input), owner.person)) found.push(id)
        }
        after = rows.at(-1)?.id ?? ''
        if (rows.length < ROWS) return found
      }
    },
    async remove(id) {
      await runs?.cancel(id)
      for (const table of BELONGING) await sql.query(`delete from ${table} where run_id = ?`, [id])
      await sql.query('delete from onceonly_runs where id = ?', [id])
      await sql.query('delete from outreach_runs where run_id = ?', [id])
    },
  }
}

function isOf(leads: Selection): string {
  return `case when exists (select 1 from outreach_runs o where o.run_id = onceonly_runs.id
    and o.lead_id in (select id from leads where ${leads.text})) then 1 else 0 end`
}

/** Every id of the workspace is between them: `0` is the character behind the slash. */
function boundsOf(workspaceId: string): readonly [string, string] {
  const scope = scopeOf(workspaceId)
  return [`${scope}/`, `${scope}0`]
}
