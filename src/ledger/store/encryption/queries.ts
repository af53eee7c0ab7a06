import { limits } from '../../core/limits.ts'
import type { LedgerRecord } from '../../core/record.ts'
import { mentionOf } from '../mentions.ts'
import type { BusyCaller, Call, Page, Queries, RecordFilter, RecordView, StateCounts, Upkeep } from '../port.ts'
import { RESTORES_ID } from '../restores.ts'
import { MARKER_ID } from './marker.ts'
import type { Opened, Opener } from './opened.ts'

/** Says that a list has come to the records from before encryption. */
const PLAIN = 'plain:'

/** Says that a search has come to what is not compared by its key. */
const REST = 'rest:'
/** Pages that one call opens and looks through: more would keep others waiting. */
const REST_PAGES = 4

type ListPage = Parameters<Queries['list']>[1]

function sealFilter({ codec }: Opened, filter: RecordFilter): RecordFilter {
  const { caller, key } = filter
  return {
    ...filter,
    ...(caller === undefined ? {} : { caller: codec.sealCaller(caller) }),
    ...(key === undefined ? {} : { key: codec.sealKey(key) }),
  }
}

/** Whether the filter finds other rows in plain than in encrypted form. */
function differs(on: Opened, { caller, key }: RecordFilter): boolean {
  return on.plain() && (caller !== undefined || key !== undefined)
}

function openCaller({ codec }: Opened, busy: BusyCaller): BusyCaller {
  return { ...busy, caller: codec.openCaller(busy.caller) }
}

export function openedQueries(queries: Queries, opener: Opener): Queries {
  const shown = ({ record }: { readonly record: LedgerRecord }) => record.id !== MARKER_ID && record.id !== RESTORES_ID
  const openView = (on: Opened, view: RecordView): RecordView => ({ ...view, record: on.codec.openRecord(view.record) })

  async function list(on: Opened, filter: RecordFilter, page: ListPage, call: Call): Promise<Page<RecordView>> {
    if (!differs(on, filter)) return queries.list(sealFilter(on, filter), page, call)
    const { limit, cursor } = page
    if (cursor?.startsWith(PLAIN)) return listPlain(filter, { limit, cursor: cursor.slice(PLAIN.length) || null }, call)
    const found = await queries.list(sealFilter(on, filter), page, call)
    return found.cursor === null ? { ...found, cursor: PLAIN } : found
  }

  async function listPlain(filter: RecordFilter, page: ListPage, call: Call): Promise<Page<RecordView>> {
    const found = await queries.list(filter, page, call)
    return { ...found, cursor: found.cursor === null ? null : PLAIN + found.cursor }
  }

  async function openedList(on: Opened, filter: RecordFilter, page: ListPage, call: Call): Promise<Page<RecordView>> {
    const { rows, cursor } = await list(on, filter, page, call)
    return { rows: rows.filter(shown).map((view) => openView(on, view)), cursor }
  }

  /** First by the key, which can be compared; what else has the id shows only when records are opened. */
  async function mentioning(
    on: Opened,
    id: string,
    filter: RecordFilter,
    { limit, cursor }: ListPage,
    call: Call,
  ): Promise<Page<RecordView>> {
    if (cursor?.startsWith(REST) !== true) {
      const found = await openedList(on, { ...filter, key: id }, { limit, cursor }, call)
      return found.cursor === null ? { ...found, cursor: REST } : found
    }
    const rows: RecordView[] = []
    let from: string | null = cursor.slice(REST.length) || null
    for (let pages = 0; pages < REST_PAGES && rows.length < limit; pages++) {
      const page: Page<RecordView> = await openedList(on, filter, { limit: limits.pageRows, cursor: from }, call)
      rows.push(...page.rows.filter(({ record }) => record.identity.key !== id && mentionOf(record, id) !== null))
      from = page.cursor
      if (from === null) return { rows, cursor: null }
    }
    return { rows, cursor: REST + from }
  }

  return {
    async get(id, call) {
      const on = await opener.open(call)
      const sealed = await queries.get(on.codec.sealId(id), call)
      const found = sealed.view === null && on.plain() ? await queries.get(id, call) : sealed
      return { now: found.now, view: found.view === null ? null : openView(on, found.view) }
    },
    async list({ mentions, ...filter }, page, call) {
      const on = await opener.open(call)
      return mentions === undefined
        ? await openedList(on, filter, page, call)
        : await mentioning(on, mentions, filter, page, call)
    },
    async count(filter, call) {
      const on = await opener.open(call)
      const sealed = await queries.count(sealFilter(on, filter), call)
      if (!differs(on, filter)) return sealed
      const plain = await queries.count(filter, call)
      const sums = Object.entries(sealed).map(([state, n]) => [state, n + plain[state as keyof StateCounts]])
      return Object.fromEntries(sums) as StateCounts
    },
    async lapsed(from, limit, call) {
      const on = await opener.open(call)
      const found = await queries.lapsed(from, limit, call)
      return { ...found, rows: found.rows.map(on.codec.openRecord) }
    },
    async unknowns(page, call) {
      const on = await opener.open(call)
      const { rows, cursor } = await queries.unknowns(page, call)
      return { rows: rows.map(on.codec.openRecord), cursor }
    },
    async busiest(since, limit, call) {
      const on = await opener.open(call)
      return (await queries.busiest(since, limit, call)).map((busy) => openCaller(on, busy))
    },
  }
}

export function openedUpkeep(upkeep: Upkeep, opener: Opener): Upkeep {
  return {
    sweep: (cursor, limit, call) => upkeep.sweep(cursor, limit, call),
    async tally(tally, call) {
      const { codec } = await opener.open(call)
      const records = tally.records.map((each) => ({ ...each, id: codec.sealId(each.id) }))
      const callers = tally.callers.map((each) => ({ ...each, caller: codec.sealCaller(each.caller) }))
      await upkeep.tally({ records, callers }, call)
    },
  }
}
