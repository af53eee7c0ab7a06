import type { Base } from '../store.ts'
import type { BrokenRecord, JobFile } from './jobs.ts'
import { Unreadable } from './parse/entry.ts'
import { parseReferences } from './parse/parse.ts'
import type { Storage, StoredFile } from './uploads/storage.ts'

/** How many broken records of a file are shown; all of them are counted. */
export const BROKEN_SHOWN_MOST = 100
/** A reason may quote the file. */
const REASON_CHARS_MOST = 500
/** References of one statement: large enough to be fast, short enough to let others write between two of them. */
const ROWS_AT_ONCE = 200
/** And their characters: a file of the longest records must not fill the memory with them. */
export const CHARS_AT_ONCE = 2 * 1024 * 1024

/** A reference as it is stored. */
interface Row {
  readonly number: number
  readonly line: number
  readonly title: string
  readonly body: string
}

/**
 * Reads a file and stores its references, outside of any transaction: a large file takes long. Nothing of it counts
 * before its job says so, and a second reader of the same file stores the same rows under the same numbers.
 */
export async function parseFile(
  { base, storage }: { readonly base: Base; readonly storage: Pick<Storage, 'read'> },
  { searchId, name, file }: { readonly searchId: string; readonly name: string; readonly file: StoredFile },
  signal: AbortSignal | null = null,
): Promise<JobFile> {
  const broken: BrokenRecord[] = []
  let brokenCount = 0
  let references = 0
  let waiting: Row[] = []
  let chars = 0
  const store = async () => {
    await insert(base, searchId, name, waiting)
    waiting = []
    chars = 0
  }
  try {
    for await (const entries of parseReferences(storage.read({ searchId, name }, file))) {
      signal?.throwIfAborted()
      for (const entry of entries) {
        if (entry.kind === 'reference') {
          const { line, reference } = entry
          const body = JSON.stringify(reference)
          waiting.push({ number: ++references, line, title: reference.title, body })
          chars += body.length
          if (waiting.length === ROWS_AT_ONCE || chars >= CHARS_AT_ONCE) await store()
        } else if (++brokenCount <= BROKEN_SHOWN_MOST) broken.push({ line: entry.line, reason: entry.reason })
      }
    }
    await store()
  } catch (error) {
    const reason = unreadable(error)
    if (reason === null) throw error
    return { name, status: 'failed', references: 0, brokenCount, broken, reason }
  }
  return { name, status: 'parsed', references, brokenCount, broken, reason: null }
}

/** What no further try can change; null for everything else. */
function unreadable(error: unknown): string | null {
  if (error instanceof Unreadable) return `The file ${error.message}`.slice(0, REASON_CHARS_MOST)
  return null
}

async function insert({ sql }: Base, searchId: string, name: string, rows: readonly Row[]): Promise<void> {
  if (rows.length === 0) return
  await sql.query(
    `insert into import_references (search_id, file_name, number, line, title, body)
     values ${rows.map(() => '(?, ?, ?, ?, ?, ?)').join(', ')} on conflict (search_id, file_name, number) do nothing`,
    rows.flatMap(({ number, line, title, body }) => [
      searchId,
      name,
      number,
      line,
      sql.secret(title),
      sql.secret(body),
    ]),
  )
}
