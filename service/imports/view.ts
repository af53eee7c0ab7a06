import type { SqlTx } from 'onceonly'
import { filesOf, type JobFile, type JobState, jobOf } from './jobs.ts'
import { type Search, type UploadRow, uploadsOf } from './searches.ts'

/** What a client sees of one file. */
export interface FileView {
  readonly name: string
  readonly status: 'waiting' | 'uploaded' | 'parsing' | 'parsed' | 'failed'
  readonly references: number
  /** Broken records by their lines, up to a bound; for a file that failed, why. */
  readonly errors: readonly { readonly line: number | null; readonly reason: string }[]
  /** How many there are in all. */
  readonly errorCount: number
}

export interface ImportView {
  readonly searchId: string
  readonly projectId: string
  readonly searchName: string
  readonly state: JobState
  /** Why it ended in `Error`. */
  readonly reason: string | null
  /** How many questions its project asks of every reference; null without a project document. */
  readonly questions: number | null
  readonly files: readonly FileView[]
  /** In all files. */
  readonly references: number
  readonly createdAt: string
}

/** The job knows best; before it exists, the search does. */
export async function viewOf(sql: Pick<SqlTx, 'query'>, search: Search): Promise<ImportView> {
  const { searchId, projectId, searchName, createdAt } = search
  const job = await jobOf(sql, searchId)
  const uploads = await uploadsOf(sql, searchId)
  const parsed = new Map((await filesOf(sql, searchId)).map((file) => [file.name, file]))
  const files = uploads.map((upload) => fileView(upload, parsed.get(upload.name)))
  return {
    searchId,
    projectId,
    searchName,
    state: job?.state ?? 'Uploading',
    reason: job?.reason ?? null,
    questions: job?.questions ?? null,
    files,
    references: files.reduce((sum, file) => sum + file.references, 0),
    createdAt: new Date(createdAt).toISOString(),
  }
}

function fileView({ name, stored_at }: UploadRow, file: JobFile | undefined): FileView {
  const status = file?.status ?? 'waiting'
  const failure = file?.reason ?? null
  const broken = file?.broken ?? []
  return {
    name,
    status: status === 'waiting' || status === 'received' ? (stored_at === null ? 'waiting' : 'uploaded') : status,
    references: file?.references ?? 0,
    errors: failure === null ? broken : [{ line: null, reason: failure }, ...broken],
    errorCount: (file?.brokenCount ?? 0) + (failure === null ? 0 : 1),
  }
}
