import type { SqlValue } from 'onceonly'
import { cursorOf, textOfCursor } from '../http/page.ts'
import type { Base } from '../store.ts'
import { isId } from './command.ts'
import type { ConversationRow, LeadRow, MessageRow, Status } from './message.ts'
import { leadColumns, messageColumns } from './message.ts'

export async function messageById({ sql }: Base, workspaceId: string, id: string): Promise<MessageRow | null> {
  if (!isId(id)) return null
  const text = `select ${messageColumns} from messages where workspace_id = ? and id = ?`
  return (await sql.query<MessageRow>(text, [workspaceId, id]))[0] ?? null
}

/** For operators, who need not know the workspace. */
export async function anyMessage({ sql }: Base, id: string): Promise<MessageRow | null> {
  if (!isId(id)) return null
  return (await sql.query<MessageRow>(`select ${messageColumns} from messages where id = ?`, [id]))[0] ?? null
}

/** What an attempt under a key left behind, by the claim of that key. */
export async function messageUnder({ sql }: Base, workspaceId: string, keyClaim: string): Promise<MessageRow | null> {
  const text = `select ${messageColumns} from messages where workspace_id = ? and key_claim = ?`
  return (await sql.query<MessageRow>(text, [workspaceId, keyClaim]))[0] ?? null
}

export async function conversationById(
  { sql }: Base,
  workspaceId: string,
  id: string,
): Promise<ConversationRow | null> {
  if (!isId(id)) return null
  const text =
    'select id, workspace_id, phone, lead_id, created_at from conversations where workspace_id = ? and id = ?'
  return (await sql.query<ConversationRow>(text, [workspaceId, id]))[0] ?? null
}

/** What is read of a list. Newest first; the cursor is the last row of the page before. */
interface ListQuery {
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

interface MessagesQuery extends ListQuery {
  readonly leadId?: string | undefined
  readonly conversationId?: string | undefined
  readonly status?: Status | undefined
}

export interface List<Row> {
  readonly rows: readonly Row[]
  /** Null at the end. */
  readonly cursor: string | null
}

export const LIMIT_MOST = 100
export const LIMIT_USUAL = 50

export function listMessages(base: Base, workspaceId: string, query: MessagesQuery): Promise<List<MessageRow>> {
  const { leadId, conversationId, status } = query
  const columns = { lead_id: leadId, conversation_id: conversationId, status }
  const wanted = Object.entries(columns).flatMap(([column, value]): [string, SqlValue][] =>
    value === undefined ? [] : [[`${column} = ?`, value]],
  )
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
  { limit = LIMIT_USUAL, cursor: given }: ListQuery,
): Promise<List<Row>> {
  const after = given === undefined ? null : placeOf(given)
  const conditions = ['workspace_id = ?', ...wanted.map(([condition]) => condition)]
  const values: SqlValue[] = [workspaceId, ...wanted.map(([, value]) => value)]
  if (after !== null) {
    conditions.push('(created_at < ? or (created_at = ? and id < ?))')
    values.push(after.createdAt, after.createdAt, after.id)
  }
  const text = `${select} where ${conditions.join(' and ')} order by created_at desc, id desc limit ?`
  // One more row than requested shows whether there is a next page.
  const rows = await sql.query<Row>(text, [...values, limit + 1])
  const last = rows.length > limit ? rows[limit - 1] : undefined
  const cursor = last === undefined ? null : cursorOf(`${Number(last.created_at)} ${last.id}`)
  return { rows: rows.slice(0, limit), cursor }
}

interface Place {
  readonly createdAt: number
  readonly id: string
}

export function placeOf(cursor: string): Place | null {
  const [, createdAt, id] = /^(\d{1,15}) ([\x21-\x7e]{1,100})$/.exec(textOfCursor(cursor)) ?? []
  return createdAt === undefined || id === undefined ? null : { createdAt: Number(createdAt), id }
}
