import { Buffer } from 'node:buffer'
import type { SqlValue } from 'onceonly'
import type { FieldError } from '../http/problem.ts'
import type { Base } from '../store.ts'
import { idOrNull } from './command.ts'
import type { ConversationRow, LeadRow, MessageRow, Status } from './message.ts'
import { leadColumns, messageColumns, statuses } from './message.ts'

export async function messageById({ sql }: Base, workspaceId: string, id: string): Promise<MessageRow | null> {
  if (idOrNull(id) === null) return null
  const text = `select ${messageColumns} from messages where workspace_id = ? and id = ?`
  return (await sql.query<MessageRow>(text, [workspaceId, id]))[0] ?? null
}

/** For operators, who need not know the workspace. */
export async function anyMessage({ sql }: Base, id: string): Promise<MessageRow | null> {
  if (idOrNull(id) === null) return null
  return (await sql.query<MessageRow>(`select ${messageColumns} from messages where id = ?`, [id]))[0] ?? null
}

/** What an attempt under a key left behind, by the claim of that key. */
export async function messageIdUnder({ sql }: Base, workspaceId: string, keyClaim: string): Promise<string | null> {
  const text = 'select id from messages where workspace_id = ? and key_claim = ?'
  return (await sql.query<{ id: string }>(text, [workspaceId, keyClaim]))[0]?.id ?? null
}

export async function conversationById(
  { sql }: Base,
  workspaceId: string,
  id: string,
): Promise<ConversationRow | null> {
  if (idOrNull(id) === null) return null
  const text =
    'select id, workspace_id, phone, lead_id, created_at from conversations where workspace_id = ? and id = ?'
  return (await sql.query<ConversationRow>(text, [workspaceId, id]))[0] ?? null
}

/** What a list is asked for. Newest first; the cursor is the last row of the page before. */
export interface ListQuery {
  readonly leadId: string | null
  readonly conversationId: string | null
  readonly status: Status | null
  readonly limit: number
  readonly after: Place | null
}

interface Place {
  readonly createdAt: number
  readonly id: string
}

export interface List<Row> {
  readonly rows: readonly Row[]
  /** Null at the end. */
  readonly cursor: string | null
}

export const LIMIT_MOST = 100
export const LIMIT_USUAL = 50

export function parseList(query: Readonly<Record<string, unknown>>): ListQuery | { readonly errors: FieldError[] } {
  const errors: FieldError[] = []
  const limit = query['limit'] === undefined ? LIMIT_USUAL : Number(query['limit'])
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > LIMIT_MOST) {
    errors.push({ field: 'limit', detail: `is not a whole number from 1 to ${LIMIT_MOST}` })
  }
  const after = query['cursor'] === undefined ? null : placeOf(query['cursor'])
  if (after === null && query['cursor'] !== undefined) {
    errors.push({ field: 'cursor', detail: 'is not one of ours: leave it out to start again' })
  }
  const idOf = (field: 'leadId' | 'conversationId') => {
    const value = query[field]
    if (value === undefined) return null
    const id = typeof value === 'string' ? idOrNull(value) : null
    if (id === null) errors.push({ field, detail: 'is not an id' })
    return id
  }
  const leadId = idOf('leadId')
  const conversationId = idOf('conversationId')
  const status = statuses.find((each) => each === query['status']) ?? null
  if (status === null && query['status'] !== undefined) {
    errors.push({ field: 'status', detail: `is none of ${statuses.join(', ')}` })
  }
  return errors.length > 0 ? { errors } : { leadId, conversationId, status, limit, after }
}

export function listMessages(base: Base, workspaceId: string, query: ListQuery): Promise<List<MessageRow>> {
  const { leadId, conversationId, status } = query
  const wanted: [string, SqlValue][] = [
    ...(leadId === null ? [] : [['lead_id = ?', leadId] satisfies [string, SqlValue]]),
    ...(conversationId === null ? [] : [['conversation_id = ?', conversationId] satisfies [string, SqlValue]]),
    ...(status === null ? [] : [['status = ?', status] satisfies [string, SqlValue]]),
  ]
  return list<MessageRow>(base, `select ${messageColumns} from messages`, workspaceId, wanted, query)
}

export function listLeads(base: Base, workspaceId: string, query: ListQuery): Promise<List<LeadRow>> {
  return list<LeadRow>(base, `select ${leadColumns} from leads`, workspaceId, [], query)
}

async function list<Row extends { readonly id: string; readonly created_at: unknown }>(
  { sql }: Base,
  select: string,
  workspaceId: string,
  wanted: readonly [string, SqlValue][],
  { limit, after }: ListQuery,
): Promise<List<Row>> {
  const conditions = ['workspace_id = ?', ...wanted.map(([condition]) => condition)]
  const values: SqlValue[] = [workspaceId, ...wanted.map(([, value]) => value)]
  if (after !== null) {
    conditions.push('(created_at < ? or (created_at = ? and id < ?))')
    values.push(after.createdAt, after.createdAt, after.id)
  }
  const text = `${select} where ${conditions.join(' and ')} order by created_at desc, id desc limit ?`
  // One more than was asked for tells whether there is a next page.
  const rows = await sql.query<Row>(text, [...values, limit + 1])
  const last = rows.length > limit ? rows[limit - 1] : undefined
  const cursor = last === undefined ? null : cursorOf({ createdAt: Number(last.created_at), id: last.id })
  return { rows: rows.slice(0, limit), cursor }
}

function cursorOf({ createdAt, id }: Place): string {
  return Buffer.from(`${createdAt} ${id}`).toString('base64url')
}

function placeOf(cursor: unknown): Place | null {
  const [, createdAt, id] =
    /^(\d{1,15}) ([\x21-\x7e]{1,100})$/.exec(Buffer.from(String(cursor), 'base64url').toString()) ?? []
  return createdAt === undefined || id === undefined ? null : { createdAt: Number(createdAt), id }
}
