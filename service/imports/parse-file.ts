import type { Base } from '../store.ts'
import type { BrokenRecord, JobFile } from './jobs.ts'
import { type Entry, Unreadable } from './parse/entry.ts'
import { parseReferences } from './parse/parse.ts'
import type { Storage } from './uploads/storage.ts'

/** How many broken records of a file are shown; all of them are counted. */
export const BROKEN_SHOWN_MOST = 100
/** A reason may quote what somebody uploaded. */
const REASON_CHARS_MOST = 500
/** References of one statement: large enough to be fast, short enough to let others write between two of them. */
const ROWS_AT_ONCE = 200

type Numbered = Extract<Entry, { kind: 'reference' }> & { readonly number: number }

/**
 * Reads a file and stores its references, outside of any transaction: a large file takes long. Nothing of it counts
 * before its job says so, and whoever reads the same file again stores the same rows under the same numbers.
 */
export async function parseFile(
  { base, storage }: { readonly base: Base; readonly storage: Storage },
  searchId: string,
  name: string,
): Promise<JobFile> {
  const broken: BrokenRecord[] = []
  let brokenCount = 0
  let references = 0
  let waiting: Numbered[] = []
  try {
    for await (const entries of parseReferences(storage.read(searchId, name))) {
      for (const entry of entries) {
        if (entry.kind === 'reference') waiting.push({ ...entry, number: ++references })
        else if (++brokenCount <= BROKEN_SHOWN_MOST) broken.push({ line: entry.line, reason: entry.reason })
      }
      for (; waiting.length >= ROWS_AT_ONCE; waiting = waiting.slice(ROWS_AT_ONCE)) {
        await insert(base, searchId, name, waiting.slice(0, ROWS_AT_ONCE))
      }
    }
    await insert(base, searchId, name, waiting)
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
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 'The file is not in the storage'
  return null
}

async function insert({ sql }: Base, searchId: string, name: string, rows: readonly Numbered[]): Promise<void> {
  if (rows.length === 0) return
  await sql.query(
    `insert into import_references (search_id, file_name, number, line, title, body)
     values ${rows.map(() => '(?, ?, ?, ?, ?, ?)').join(', ')} on conflict (search_id, file_name, number) do nothing`,
    rows.flatMap(({ number, line, reference }) => [
      searchId,
      name,
      number,
      line,
      reference.title,
      JSON.stringify(reference),
    ]),
  )
}
