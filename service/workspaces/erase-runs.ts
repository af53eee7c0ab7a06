import type { Admin, ErasedOwner } from 'onceonly/admin'
import { scopeOf } from '../outreach/run-scope.ts'
import type { Base } from '../store.ts'
import { createLeft, type Erased } from './erase-left.ts'
import { mentions, ROWS, type Selection } from './erase-rows.ts'

/** The runs of an owner, with all that belongs to them. */
export interface RunRemoval {
  /** @param leads of the owner: the run of a campaign names its lead only */
  count(owner: ErasedOwner, leads: Selection): Promise<Erased>
  /** Ids stay taken until the retention of a run ends, so that no webhook goes out again under the key of its step. */
  remove(owner: ErasedOwner, leads: Selection, progress: () => void): Promise<Erased>
}

const PASSES = 3

export function createRunRemoval({ sql }: Base, { runs }: Pick<Admin, 'runs'>): RunRemoval {
  async function* each(owner: ErasedOwner, leads: Selection): AsyncGenerator<string> {
    const [where, values] = owner.tenant === undefined ? ['1 = 1', []] : ['id >= ? and id < ?', boundsOf(owner.tenant)]
    for (let after = ''; ; ) {
      const rows = await sql.query<{ id: string; input: string; is_own: unknown }>(
        `select id, input, ${isOf(leads)} as is_own from onceonly_runs where ${where} and id > ? order by id limit ${ROWS}`,
        [...leads.values, ...values, after],
      )
      for (const { id, input, is_own } of rows) {
        const isOwn = owner.kind === 'workspace' || Number(is_own) === 1
        if (isOwn || mentions(JSON.parse(input), owner.person)) yield id
      }
      after = rows.at(-1)?.id ?? ''
      if (rows.length < ROWS) return
    }
  }

  async function all(owner: ErasedOwner, leads: Selection, preview: boolean, progress: () => void): Promise<Erased> {
    const left = createLeft()
    let count = 0
    for await (const id of each(owner, leads)) {
      const erased = (await runs?.erase(id, { preview })) ?? 'gone'
      if (erased === 'erased') count++
      if (erased === 'running' || erased === 'unknown') left.add({ what: 'run', id, why: erased })
      progress()
    }
    return { count, left: left.seen() }
  }

  return {
    count: (owner, leads) => all(owner, leads, true, () => {}),
    async remove(owner, leads, progress) {
      if (owner.kind === 'person') return await all(owner, leads, false, progress)
      let count = 0
      for (let pass = 1; ; pass++) {
        const erased = await all(owner, leads, false, progress)
        count += erased.count
        // A campaign may have begun runs behind the place that was looked at.
        if (erased.count > 0 && pass < PASSES) continue
        await sql.query(
          `delete from outreach_runs where workspace_id = ? and not exists
            (select 1 from onceonly_runs r where r.id = outreach_runs.run_id and r.ended_at is null)`,
          [owner.tenant],
        )
        return { count, left: erased.left }
      }
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
