import type { FastifyInstance } from 'fastify'
import type { SqlTx } from 'onceonly'
import type { InputTypes } from '../http/input.ts'
import { cursorOf } from '../http/page.ts'
import { routeOptions } from '../openapi/route.ts'
import type { ServerParts } from '../parts.ts'
import { type Place, placeOf, REFERENCES_USUAL, type ReferenceView, readReferences } from './document.ts'
import { filesOf, type JobFile } from './jobs.ts'
import type { Reference } from './parse/entry.ts'
import { ownSearch, sendNoFile, sendNoImport } from './routes.ts'

/** A page ends behind the reference that goes over this: an abstract may have pages of its own. */
const PAGE_CHARS_MOST = 2 * 1024 * 1024
const ROWS_AT_ONCE = 20

/** `GET /api/imports/{searchId}/references`: what was imported, in the order of the files and inside of them. */
export function addReferences(server: FastifyInstance, { base }: Pick<ServerParts, 'base'>): void {
  const options = routeOptions(readReferences)
  server.withTypeProvider<InputTypes>().get('/api/imports/:searchId/references', options, async (request, reply) => {
    const { searchId } = request.params
    const search = await ownSearch(base, request, searchId)
    if (search === null) return sendNoImport(reply, searchId)
    const { file = null, limit = REFERENCES_USUAL, cursor } = request.query
    if (file !== null && !search.referenceFiles.includes(file)) return sendNoFile(reply, 'file')
    const after = cursor === undefined ? null : placeOf(cursor)
    const query = { file, limit, after: after ?? BEGINNING }
    return await pageOf(base.sql, searchId, await filesOf(base.sql, searchId), query)
  })
}

interface Query {
  readonly file: string | null
  readonly limit: number
  readonly after: Place
}

const BEGINNING: Place = { file: 0, number: 0 }

interface Row {
  readonly number: number
  readonly line: number
  readonly body: string
}

interface Page {
  readonly references: readonly ReferenceView[]
  /** Null at the end. */
  readonly cursor: string | null
}

async function pageOf(
  sql: Pick<SqlTx, 'query'>,
  searchId: string,
  files: readonly JobFile[],
  { file, limit, after }: Query,
): Promise<Page> {
  const references: ReferenceView[] = []
  let [last, chars] = [after, 0]
  for (const [at, { name, status }] of files.entries()) {
    // What a file that failed, or is still being read, has left behind so far does not count.
    if (status !== 'parsed' || at < after.file || (file !== null && file !== name)) continue
    for await (const row of rowsAfter(sql, searchId, name, at === after.file ? after.number : 0)) {
      // There is one more: the page ends here, and not the list.
      if (references.length === limit || chars > PAGE_CHARS_MOST)
        return { references, cursor: cursorOf(`${last.file} ${last.number}`) }
      const place = { file: name, number: Number(row.number), line: Number(row.line) }
      references.push({ ...place, ...(JSON.parse(row.body) as Reference) })
      chars += row.body.length
      last = { file: at, number: place.number }
    }
  }
  return { references, cursor: null }
}

/** A few at a time, because each may be as long as a record can be. */
async function* rowsAfter(
  { query }: Pick<SqlTx, 'query'>,
  searchId: string,
  file: string,
  number: number,
): AsyncGenerator<Row> {
  for (let [from, rows]: [number, readonly Row[] | null] = [number, null]; rows?.length !== 0; ) {
    rows = await query<Row>(
      `select number, line, body from import_references
       where search_id = ? and file_name = ? and number > ? order by number limit ?`,
      [searchId, file, from, ROWS_AT_ONCE],
    )
    yield* rows
    from = Number(rows.at(-1)?.number ?? from)
  }
}
