import { DAY } from 'onceonly'
import type { Config } from '../config.ts'
import { inTransaction } from '../messages/transaction.ts'
import type { Base } from '../store.ts'
import type { Sweep } from '../workspaces/retention.ts'
import { uploadsOf } from './searches.ts'
import type { Storage } from './uploads/storage.ts'

interface Parts {
  readonly base: Base
  readonly storage: Pick<Storage, 'remove' | 'tidy'>
  readonly config: Pick<Config, 'retainUploadsDays' | 'retainImportsDays'>
}

/** Imports that one step takes on: each has up to a hundred files. */
const IMPORTS = 10
/** References of an import that one statement removes: they may have abstracts of pages. */
const REFERENCES = 500

export const ENDED = `state in ('Completed', 'Error')`

export interface ImportRemoval {
  /** Answers how many there were. */
  removeFiles(searchId: string): Promise<number>
  removeImport(searchId: string): Promise<void>
}

export function createImportRemoval({ base, storage }: Omit<Parts, 'config'>): ImportRemoval {
  const { sql } = base

  /** Also those that were never announced: they may be there all the same. */
  async function removeFiles(searchId: string): Promise<number> {
    const uploads = await uploadsOf(sql, searchId)
    for (const { name, version } of uploads) await storage.remove({ searchId, name }, version)
    await inTransaction(base, async (tx) => {
      await tx.query(`update import_uploads set removed_at = ${sql.now} where search_id = ?`, [searchId])
      await tx.query('update import_jobs set files_removed = 1 where search_id = ?', [searchId])
    })
    return uploads.length
  }

  async function removeImport(searchId: string): Promise<void> {
    // Once more: an upload that was under way when they were removed may have come after that.
    await removeFiles(searchId)
    // From here on no client sees the import; its job, which leads to the rest, goes last.
    await inTransaction(base, async (tx) => {
      await tx.query('delete from import_uploads where search_id = ?', [searchId])
      await tx.query('delete from import_searches where search_id = ?', [searchId])
    })
    while ((await removeReferences(searchId)) === REFERENCES);
    await inTransaction(base, async (tx) => {
      await tx.query('delete from import_job_files where search_id = ?', [searchId])
      await tx.query('delete from import_jobs where search_id = ?', [searchId])
    })
  }

  async function removeReferences(searchId: string): Promise<number> {
    const some = 'select file_name, number from import_references where search_id = ? limit ?'
    const text = `delete from import_references where search_id = ? and (file_name, number) in (${some}) returning number`
    return (await sql.query(text, [searchId, searchId, REFERENCES])).length
  }

  return { removeFiles, removeImport }
}

/**
 * What an import leaves behind goes in three parts: its files some days after its end, because only a parser reads them;
 * everything else much later; and room that was promised to files which did not come, at once. A step that a crash cuts
 * off is done again by the next one: a file goes before the row that leads to it.
 */
export function importSweeps({ base, storage, config }: Parts): readonly Sweep[] {
  const { sql } = base
  const { removeFiles, removeImport } = createImportRemoval({ base, storage })

  async function jobsBefore(days: number, condition: string): Promise<readonly string[]> {
    const text = `select search_id from import_jobs where ${condition} and changed_at <= ${sql.now} - ?
      order by changed_at limit ?`
    const rows = await sql.query<{ readonly search_id: string }>(text, [days * DAY, IMPORTS])
    return rows.map(({ search_id }) => search_id)
  }

  /** Imports that nothing ever worked on, because the news of them was lost. */
  async function forsaken(days: number): Promise<readonly string[]> {
    const text = `select s.search_id from import_searches s left join import_jobs j on j.search_id = s.search_id
      where s.created_at <= ${sql.now} - ? and j.search_id is null order by s.created_at limit ?`
    const rows = await sql.query<{ readonly search_id: string }>(text, [days * DAY, IMPORTS])
    return rows.map(({ search_id }) => search_id)
  }

  return [
    {
      name: 'promised bytes',
      from: {
        text: `select 0 from import_uploads where promised is not null and stored_at is null
          and search_id in (select search_id from import_jobs where ${ENDED}) limit 1`,
        agoMs: 0,
      },
      async step() {
        const gone = await sql.query(
          `update import_uploads set promised = null where promised is not null and stored_at is null
             and search_id in (select search_id from import_jobs where ${ENDED}) returning name`,
        )
        return { removed: gone.length, more: false }
      },
    },
    {
      name: 'uploaded files',
      from: {
        text: `select min(changed_at) from import_jobs where ${ENDED} and files_removed = 0`,
        agoMs: config.retainUploadsDays * DAY,
      },
      async step() {
        const ids = await jobsBefore(config.retainUploadsDays, `${ENDED} and files_removed = 0`)
        let removed = 0
        for (const id of ids) removed += await removeFiles(id)
        return { removed, more: ids.length === IMPORTS }
      },
    },
    {
      name: 'imports',
      from: {
        text: `select min(at) from (select min(changed_at) as at from import_jobs
          union all select min(created_at) from import_searches) as oldest`,
        agoMs: config.retainImportsDays * DAY,
      },
      async step() {
        const days = config.retainImportsDays
        // One that has not come to its end for so long has lost its worker.
        const ids = [...(await jobsBefore(days, 'true')), ...(await forsaken(days))]
        for (const id of ids) await removeImport(id)
        return { removed: ids.length, more: ids.length >= IMPORTS }
      },
    },
    {
      name: 'broken uploads',
      async step() {
        await storage.tidy()
        return { removed: 0, more: false }
      },
    },
  ]
}
