import { ENDED, type ImportRemoval } from '../imports/retention.ts'
import { SEARCH_IMPORT } from '../imports/saga.ts'
import type { Base } from '../store.ts'
import { createOwnRows, hasRoom } from './erase-rows.ts'

const IMPORTS = 20
/** What a saga keeps of an instance. */
const SAGA_TABLES = ['instances', 'pending', 'history']

/** The imports of a workspace, with their files, references, and what their saga noted. */
export interface WorkspaceImports {
  ids(tenant: string): Promise<ReadonlySet<string>>
  count(tenant: string): Promise<number>
  remove(tenant: string, progress: () => void): Promise<number>
}

export function createWorkspaceImports(base: Base, removal: ImportRemoval): WorkspaceImports {
  const { sql } = base
  const rows = createOwnRows(base)

  /** Late events find the permanent claim of the import, as they do after the sweep of its saga. */
  async function forgetSaga(searchId: string): Promise<void> {
    for (const table of SAGA_TABLES) {
      await sql.query(`delete from onceonly_saga_${table} where saga = ? and id = ?`, [SEARCH_IMPORT, searchId])
    }
  }

  return {
    async ids(tenant) {
      const found = await sql.query<{ search_id: string }>(
        `select search_id from import_searches where workspace_id = ?
         union select search_id from import_jobs where workspace_id = ?`,
        [tenant, tenant],
      )
      return new Set(found.map(({ search_id }) => search_id))
    },
    count: (tenant) => rows.count('import_searches', { text: 'workspace_id = ?', values: [tenant] }),
    async remove(tenant, progress) {
      const hasSagas = await hasRoom(sql, 'saga')
      let removed = 0
      for (;;) {
        const ended = await sql.query<{ search_id: string }>(
          `select s.search_id from import_searches s left join import_jobs j on j.search_id = s.search_id
           where s.workspace_id = ? and (j.search_id is null or j.${ENDED}) limit ${IMPORTS}`,
          [tenant],
        )
        for (const { search_id } of ended) {
          if (hasSagas) await forgetSaga(search_id)
          await removal.removeImport(search_id)
        }
        removed += ended.length
        progress()
        if (ended.length < IMPORTS) return removed
      }
    },
  }
}
