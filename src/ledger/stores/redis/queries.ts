import { limits } from '../../core/limits.ts'
import type { LedgerRecord } from '../../core/record.ts'
import type { Page, Queries, RecordFilter, RecordView } from '../../store/port.ts'
import type { VisibleRecord } from '../../store/visible.ts'
import { countStates, fits, isVisible } from '../../store/visible.ts'
import { readBusiest } from './callers.ts'
import type { CallDeadline } from './connection.ts'
import type { Core } from './core.ts'
import { readLapsed } from './lapsed.ts'
import { readNewest, viewOf } from './newest.ts'
import { indexScriptOf } from './script.ts'

/** Rows of one look into each bucket: a page of most filters, and a moment's work for the server. */
const LOOK_ROWS = 100
/** Heads are small, and a count needs all of them. */
const COUNT_ROWS = 1_000

const getScript = indexScriptOf(
  'no',
  `answer(call('GET', KEYS[FIRST_KEY]))
   answer(call('HGET', COUNTS, ARGV[4]))`,
)

export function createQueries(core: Core): Queries {
  const { names } = core
  return {
    get: (id, call) =>
      core.call(call, async (deadline) => {
        const bucket = names.bucketOf(id)
        const { now, answers } = await core.run(getScript, bucket, { keys: [bucket.record + id], args: [id] }, deadline)
        const [value, counts] = answers as [string | null, string | null]
        const view = value === null ? null : viewOf(id, value, counts)
        return { now, view: view !== null && isVisible(view.record, now) ? view : null }
      }),
    list: (filter, page, call) => core.call(call, (deadline) => listRecords(core, filter, page, deadline)),
    count: (filter, call) =>
      core.call(call, async (deadline) => countStates(await visibleRecords(core, filter, deadline))),
    lapsed: (from, limit, call) => core.call(call, (deadline) => readLapsed(core, from, limit, deadline)),
    unknowns: ({ limit, cursor }, call) => core.call(call, (deadline) => listUnknowns(core, limit, cursor, deadline)),
    busiest: (since, limit, call) => core.call(call, (deadline) => readBusiest(core, since, limit, deadline)),
  }
}

/** Newest first, looking at a bounded number of rows. */
async function listRecords(
  core: Core,
  filter: RecordFilter,
  { limit, cursor }: { readonly limit: number; readonly cursor: string | null },
  deadline: CallDeadline,
): Promise<Page<RecordView>> {
  const rows: RecordView[] = []
  let below = cursor === null ? null : Number(cursor)
  for (let looked = 0; looked < limits.scanRows; ) {
    const walk = { index: 'fences', below, rows: LOOK_ROWS } as const
    const { now, found, floor } = await readNewest(core, walk, deadline)
    for (const { fence, view } of found) {
      if (view === null || !fits(view.record, filter)) continue
      if (filter.ended !== true && !isVisible(view.record, now)) continue
      rows.push(view)
      if (rows.length === limit) return { rows, cursor: String(fence) }
    }
    if (floor === null) return { rows, cursor: null }
    looked += found.length
    below = floor
  }
  return { rows, cursor: String(below) }
}

/** A look at everything, which no index can spare: it ends when the caller's time is up. */
async function visibleRecords(core: Core, filter: RecordFilter, deadline: CallDeadline): Promise<VisibleRecord[]> {
  const records: VisibleRecord[] = []
  let below: number | null = null
  for (;;) {
    const walk = { index: 'fences', below, rows: COUNT_ROWS, heads: true } as const
    const { now, found, floor }: Awaited<ReturnType<typeof readNewest>> = await readNewest(core, walk, deadline)
    for (const { view } of found) {
      if (view !== null && isVisible(view.record, now) && fits(view.record, filter)) records.push(view.record)
    }
    if (floor === null) return records
    below = floor
  }
}

async function listUnknowns(
  core: Core,
  limit: number,
  cursor: string | null,
  deadline: CallDeadline,
): Promise<Page<LedgerRecord>> {
  const below = cursor === null ? null : Number(cursor)
  const { found, floor } = await readNewest(core, { index: 'unknowns', below, rows: limit }, deadline)
  const page = found.slice(0, limit)
  const rows = page.flatMap(({ view }) => (view?.record.state === 'unknown' ? [view.record] : []))
  const last = page.at(-1)
  const more = found.length > page.length || floor !== null
  return { rows, cursor: more && last !== undefined ? String(last.fence) : null }
}
