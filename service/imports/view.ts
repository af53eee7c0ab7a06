import type { SqlTx } from 'onceonly'
import Type, { type Static, type TObject } from 'typebox'
import { oneOf } from '../http/input.ts'
import { count, instant, list, named, record, text, textOrNull } from '../openapi/declaration.ts'
import { filesOf, type JobFile, jobOf, jobStates } from './jobs.ts'
import { BROKEN_SHOWN_MOST } from './parse-file.ts'
import { type Search, type UploadRow, uploadsOf } from './searches.ts'

/** What a client sees of one file. */
const file = named(
  'ImportFile',
  record({
    name: text,
    status: oneOf(['waiting', 'uploaded', 'parsing', 'parsed', 'failed']),
    references: count,
    errors: list(record({ line: Type.Unsafe<number | null>({ type: ['integer', 'null'] }), reason: text }), {
      description: `Broken records by their lines, the first ${BROKEN_SHOWN_MOST} of them; for a file that failed, why, without a line.`,
    }),
    errorCount: { ...count, description: 'How many there are in all.' },
  }),
)
type FileView = Static<typeof file>

/** What a client sees of an import, without its history. */
export const view = {
  searchId: text,
  projectId: text,
  searchName: text,
  state: oneOf(jobStates),
  reason: { ...textOrNull, description: 'Why it ended in `Error`.' },
  questions: Type.Unsafe<number | null>({
    type: ['integer', 'null'],
    description: 'How many questions its project asks of every reference.',
  }),
  files: list(file),
  references: { ...count, description: 'In all files.' },
  createdAt: instant,
}
export type ImportView = Static<TObject<typeof view>>

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
