import type { SqlTx } from 'onceonly'
import type { Base } from '../store.ts'
import type { SearchMetadata } from './metadata.ts'
import type { StoredFile, Upload } from './uploads/storage.ts'

/** A search as it was asked for, with the set of its files. */
export interface Search extends SearchMetadata {
  readonly searchId: string
  readonly workspaceId: string
  readonly createdAt: number
}

export interface UploadRow {
  readonly name: string
  readonly etag: string | null
  readonly bytes: number | string | null
  readonly version: string | null
  readonly stored_at: number | string | null
  readonly received_at: number | string | null
  /** When the file was removed at the end of its retention. */
  readonly removed_at: number | string | null
}

type Query = Pick<SqlTx, 'query'>

/** False when it is there already. */
export async function insertSearch(
  { query, secret }: Query & Pick<Base['sql'], 'secret'>,
  search: Search,
): Promise<boolean> {
  const { searchId, workspaceId, projectId, searchName, referenceFiles, createdAt } = search
  const inserted = await query(
    `insert into import_searches (search_id, workspace_id, project_id, search_name, created_at)
     values (?, ?, ?, ?, ?) on conflict (search_id) do nothing returning search_id`,
    [searchId, workspaceId, projectId, secret(searchName), createdAt],
  )
  if (inserted.length === 0) return false
  for (const [position, name] of referenceFiles.entries()) {
    await query('insert into import_uploads (search_id, name, position) values (?, ?, ?)', [searchId, name, position])
  }
  return true
}

export async function isSearch({ query }: Query, searchId: string): Promise<boolean> {
  return (await query('select 1 from import_searches where search_id = ?', [searchId])).length > 0
}

export async function searchById({ query }: Query, searchId: string): Promise<Search | null> {
  const [row] = await query<Omit<Search, 'referenceFiles'>>(
    `select search_id as "searchId", workspace_id as "workspaceId", project_id as "projectId",
       search_name as "searchName", created_at as "createdAt" from import_searches where search_id = ?`,
    [searchId],
  )
  if (row === undefined) return null
  const referenceFiles = (await uploadsOf({ query }, searchId)).map(({ name }) => name)
  return { ...row, referenceFiles, createdAt: Number(row.createdAt) }
}

export function uploadsOf({ query }: Query, searchId: string): Promise<readonly UploadRow[]> {
  return query<UploadRow>(
    `select name, etag, bytes, version, stored_at, received_at, removed_at from import_uploads
     where search_id = ? order by position`,
    [searchId],
  )
}

/** Its holder is alone with the search until the transaction ends. False when there is no such search. */
export async function holdSearch({ query }: Query, searchId: string): Promise<boolean> {
  const held = await query(
    'update import_searches set search_name = search_name where search_id = ? returning search_id',
    [searchId],
  )
  return held.length > 0
}

/** `other`: the file has other content, which came first and stays. */
export type Accepted = 'first' | 'same' | 'other'

/** The store decides which content a file has, wherever it was uploaded to: the first that it accepts, for good. */
export async function acceptFile(
  { query }: Query,
  { searchId, name }: Upload,
  { etag, bytes, version }: StoredFile,
  now: number,
): Promise<Accepted> {
  const marked = await query(
    `update import_uploads set etag = ?, bytes = ?, version = ?, stored_at = ?
     where search_id = ? and name = ? and stored_at is null returning name`,
    [etag, bytes, version, now, searchId, name],
  )
  if (marked.length > 0) return 'first'
  const [row] = await query<Pick<UploadRow, 'etag'>>(
    'select etag from import_uploads where search_id = ? and name = ?',
    [searchId, name],
  )
  return row?.etag === etag ? 'same' : 'other'
}

/** What the store accepted of a file; null before it has. */
export function acceptedFile({
  etag,
  bytes,
  version,
}: Pick<UploadRow, 'etag' | 'bytes' | 'version'>): StoredFile | null {
  return etag === null ? null : { etag, bytes: Number(bytes), version }
}

/** Only the first time. */
export async function markReceived({ query }: Query, searchId: string, name: string, now: number): Promise<boolean> {
  const marked = await query(
    `update import_uploads set received_at = ? where search_id = ? and name = ? and received_at is null returning name`,
    [now, searchId, name],
  )
  return marked.length > 0
}

/** True for the first call that finds the set complete, and false afterwards. Hold the search before. */
export async function markSaved({ query }: Query, searchId: string, now: number): Promise<boolean> {
  const saved = await query(
    `update import_searches set saved_at = ? where search_id = ? and saved_at is null and not exists (
       select 1 from import_uploads where search_id = ? and received_at is null
     ) returning search_id`,
    [now, searchId, searchId],
  )
  return saved.length > 0
}
