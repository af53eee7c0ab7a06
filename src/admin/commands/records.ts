import type { Identity } from '../../ledger/core/identity.ts'
import { limits } from '../../ledger/core/limits.ts'
import type { Page, RecordFilter } from '../../ledger/store/port.ts'
import type { Card } from '../core/card.ts'
import type { Explanation } from '../core/explain.ts'
import { type Found, foundRecord } from '../core/find.ts'
import type { UnknownOutcome } from '../core/unknowns.ts'
import { oneOf, optional, text, type Values, withDefault } from './argument.ts'
import { type Context, given, read } from './command.ts'
import { limit, paging, since, sinceTime, timeOf } from './paging.ts'
import { badArgument, notFound } from './refusal.ts'

/** Pages that one call looks through for an id: about 200 000 records, and less than a second. */
const FIND_PAGES = 10

/** Counting looks at every record. */
const STATUS_MS = 10_000

export const recordArguments = {
  id: optional(text('the id of the record, instead of tenant, caller, operation and key')),
  tenant: optional(text('the tenant of the record')),
  caller: optional(text('its caller')),
  operation: optional(text('its operation')),
  key: optional(text('its key')),
  batch: optional(text('the batch of the key, where it has one')),
}
export const recordWords = ['tenant', 'caller', 'operation', 'key'] as const

const kind = optional(oneOf('users: of requests; internal: of inboxes, guards and deliveries', ['users', 'internal']))

const states = ['in_progress', 'succeeded', 'failed_terminal', 'failed_retryable', 'unknown'] as const

/** Each explanation asks the store several questions. */
const fewRows = withDefault(limit, 10)

const key = text('the key, the id of a record, of a message or of what was made, an effect key, or the hash of a guard')

export const recordReads = {
  status: read({
    summary: 'records by state, rates, lag, and what needs attention',
    arguments: {},
    path: '/status',
    sharedMs: STATUS_MS,
    read: ({ admin }) => admin.status(),
  }),
  records: read({
    summary: 'records, newest first',
    arguments: {
      tenant: optional(text('only of this tenant')),
      caller: optional(text('only of this caller')),
      operation: optional(text('only of this operation')),
      key: optional(text('only with this key')),
      state: optional(oneOf('only in this state', states)),
      kind,
      since: sinceTime,
      ...paging,
    },
    path: '/records',
    async read(context, { limit, cursor = null, since, kind, ...filter }) {
      const from = await timeOf(context, since)
      const fitting: RecordFilter = given({ ...filter, since: from })
      return await recordsOfKind(context, fitting, kind, { limit, cursor })
    },
  }),
  find: read({
    summary:
      'everything that has this id: records, messages, runs, steps, queues, schedules, dead letters, sagas, rooms',
    details:
      'Any id will do: a key, the id of a record, a message, a run or what a command made, an effect key that a provider\nshows, the hash of a guard, the name of a queue, a schedule or a room; on a server also the id of one of its last requests.',
    arguments: { id: text('the id'), ...paging },
    words: ['id'],
    path: '/find',
    async read({ admin, find = async () => [] }, { id, limit, cursor = null }): Promise<Page<Found>> {
      // Records may be many, and are looked through page by page; everything else stands on the first one.
      const others = cursor === null ? (await Promise.all([find(id), admin.find(id)])).flat() : []
      let records = await admin.search(id, { limit, cursor })
      for (let pages = 1; records.rows.length === 0 && records.cursor !== null && pages < FIND_PAGES; pages++) {
        records = await admin.search(id, { limit, cursor: records.cursor })
      }
      return { rows: [...others, ...records.rows.map(foundRecord)], cursor: records.cursor }
    },
  }),
  search: read({
    summary: 'records that have this id, newest first',
    arguments: { key, ...paging },
    words: ['key'],
    path: '/search',
    read: ({ admin }, { key, limit, cursor = null }) => admin.search(key, { limit, cursor }),
  }),
  inspect: read({
    summary: 'one record: the ten questions of the runbook, answered',
    details: 'Name the record by TENANT CALLER OPERATION KEY, or by --id.',
    arguments: recordArguments,
    words: recordWords,
    path: '/records/:id',
    async read(context, args) {
      const found = await findRecord(context, args)
      return { ...found, stored: await context.admin.answer(found.record.id), storedHidden: false }
    },
    forViewer: (found) => ({ ...found, stored: null, storedHidden: true }),
  }),
  explain: read({
    summary: 'the same for every record that has this key',
    details:
      'Looks through the records, newest first, also those that have expired, or were released or forgotten, until they\nare swept.',
    arguments: { key, ...paging, limit: fewRows },
    words: ['key'],
    path: '/explain',
    async read({ admin }, { key, limit, cursor = null }): Promise<Page<Explanation>> {
      const page = await admin.search(key, { limit, cursor })
      const found = await Promise.all(page.rows.map(({ id }) => admin.inspect({ id })))
      return { rows: found.filter((each) => each !== null), cursor: page.cursor }
    },
  }),
  stale: read({
    summary: 'leases past their end that no process has taken over, oldest first',
    arguments: { limit, since: sinceTime },
    path: '/stale',
    async read(context, { limit, since: from }) {
      const rows = await context.admin.stale({ limit })
      return { rows: await since(context, from, rows, ({ claimedAt }) => claimedAt) }
    },
  }),
  unknowns: read({
    summary: 'everything that waits for a decision: unknown records, messages and steps, parked runs, dead letters',
    details:
      'Messages are records of the operation messages.deliver. Each row has its age, what the provider was asked, and the\ncommand that ends it.',
    arguments: { ...paging, since: sinceTime },
    path: '/unknowns',
    async read(context, { limit, cursor = null, since: from }): Promise<Page<UnknownOutcome>> {
      const page = await context.admin.unknowns({ limit, cursor })
      return { ...page, rows: await since(context, from, page.rows, (row) => row.since) }
    },
    forViewer: ({ rows, cursor }) => ({
      rows: rows.map((row) => (row.kind === 'step' ? { ...row, plan: null } : row)),
      cursor,
    }),
  }),
  busiest: read({
    summary: 'the callers with the most attempts of the last hour, or since --since',
    arguments: { kind, limit, since: sinceTime },
    path: '/busiest',
    async read(context, { kind: wanted, limit, since }) {
      const from = await timeOf(context, since)
      const rows = await context.admin.busiest({ limit: limits.pageRows, ...given({ since: from }) })
      return { rows: rows.filter((row) => isOfKind(row, wanted, context)).slice(0, limit) }
    },
  }),
  conflicts: read({
    summary: 'keys that were used again with another payload, or while their first attempt ran',
    arguments: { ...paging, since: sinceTime },
    path: '/conflicts',
    async read(context, { limit, cursor = null, since }): Promise<Page<Card>> {
      const from = await timeOf(context, since)
      return await context.admin.conflicts({ limit, cursor, ...given({ since: from }) })
    },
  }),
  guard: read({
    summary: 'locks of the content guards, newest first',
    arguments: paging,
    needs: ['guards'],
    path: '/guard',
    async read({ admin, guards = [] }, { limit, cursor = null }) {
      const now = await admin.now()
      // Guards are listed one after the other: the cursor begins with the number of the current one.
      const [, at = '0', rest = ''] = /^(\d{1,4}):(.*)$/s.exec(cursor ?? '') ?? []
      const operation = guards[Number(at)]
      if (operation === undefined) return { rows: [], cursor: null }
      const page = await admin.records({ operation }, { limit, cursor: rest === '' ? null : rest })
      const rows = page.rows.map((card) => ({ ...card, original: card.pointer, ageMs: now - card.claimedAt }))
      const next = Number(at) + 1
      const after = page.cursor === null ? (next < guards.length ? `${next}:` : null) : `${at}:${page.cursor}`
      return { rows, cursor: after }
    },
  }),
}

/** Pages of records that one call looks through for those of a kind. */
const KIND_PAGES = 20

/** Internal is what this package does for itself, and what the program says that it does. */
function isOfKind(
  { operation }: Pick<Identity, 'operation'>,
  kind: 'users' | 'internal' | undefined,
  { internals = [] }: Context,
): boolean {
  const isInternal = /^(?:inbox\.|guard\.|unique:)/.test(operation) || internals.includes(operation)
  return kind === undefined || isInternal === (kind === 'internal')
}

async function recordsOfKind(
  context: Context,
  filter: RecordFilter,
  kind: 'users' | 'internal' | undefined,
  { limit, cursor: from }: { readonly limit: number; readonly cursor: string | null },
): Promise<Page<Card>> {
  const rows: Card[] = []
  let cursor = from
  for (let page = 0; page < KIND_PAGES && rows.length < limit; page++) {
    const next: Page<Card> = await context.admin.records(filter, { limit, cursor })
    const fitting = next.rows.filter(({ identity }) => isOfKind(identity, kind, context))
    rows.push(...fitting)
    cursor = next.cursor
    if (cursor === null) break
  }
  return { rows, cursor }
}

export async function findRecord({ admin }: Context, args: Values<typeof recordArguments>): Promise<Explanation> {
  const found = await admin.inspect(args.id === undefined ? identityOf(args) : { id: args.id })
  if (found === null) throw notFound('No record found.')
  return found
}

function identityOf({ tenant, caller, operation, key, batch }: Values<typeof recordArguments>): Identity {
  if (tenant === undefined || caller === undefined || operation === undefined || key === undefined) {
    throw badArgument('id', 'is missing. Name the record by TENANT CALLER OPERATION KEY, or by --id')
  }
  return { tenant, caller, operation, key, ...given({ batch }) }
}
