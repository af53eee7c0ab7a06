import type { SqlTx } from 'onceonly'
import type { Base } from '../store.ts'
import { hashOf, keyIdOf, newKey, sameSecret } from './keys.ts'

/** A caller of one workspace, known by the API key of this request. */
export interface Caller {
  readonly workspaceId: string
  readonly caller: string
  readonly keyId: string
  /** As they were when the key was read; null without a limit. */
  readonly rights: readonly string[] | null
}

export const rightNames = ['messages', 'escalations', 'imports', 'outreach', 'chat'] as const
export type Right = (typeof rightNames)[number]

/** Workspaces, their API keys, and what their callers may do. */
export interface Workspaces {
  authenticate(key: string): Promise<Caller | null>
  put(id: string, name: string): Promise<void>
  exists(id: string): Promise<boolean>
  /** The key is shown once, here. */
  addKey(workspaceId: string, caller: string, options?: AddKeyOptions): Promise<{ keyId: string; key: string }>
  removeKey(keyId: string): Promise<boolean>
  /** All keys of a caller, except this one. */
  removeOtherKeys(workspaceId: string, caller: string, keyId: string | null): Promise<void>
  setRights(workspaceId: string, caller: string, rights: readonly Right[]): Promise<void>
}

interface AddKeyOptions {
  /** A new one, when left out. */
  readonly key?: string
  /** Of the transaction that it belongs to. */
  readonly query?: SqlTx['query'] | undefined
}

interface KeyRow {
  readonly workspace_id: string
  readonly caller: string
  readonly hash: string
  readonly rights: string | null
}

export function mayUse({ rights }: Caller, right: Right): boolean {
  return rights === null || rights.includes(right)
}

export function createWorkspaces({ sql }: Base): Workspaces {
  return {
    async authenticate(key) {
      const keyId = keyIdOf(key)
      const [row] = await sql.query<KeyRow>(
        `select k.workspace_id, k.caller, k.hash, r.rights from api_keys as k
         left join caller_rights as r on r.workspace_id = k.workspace_id and r.caller = k.caller where k.id = ?`,
        [keyId],
      )
      if (row === undefined || !sameSecret(key, row.hash)) return null
      const { workspace_id: workspaceId, caller, rights } = row
      return { workspaceId, caller, keyId, rights: rights?.split(' ') ?? null }
    },
    async put(id, name) {
      await sql.query(
        'insert into workspaces (id, name) values (?, ?) on conflict (id) do update set name = excluded.name',
        [id, name],
      )
    },
    async exists(id) {
      return (await sql.query('select 1 from workspaces where id = ?', [id])).length > 0
    },
    async addKey(workspaceId, caller, { key = newKey(), query = sql.query } = {}) {
      const keyId = keyIdOf(key)
      await query(
        `insert into api_keys (id, workspace_id, caller, hash) values (?, ?, ?, ?)
         on conflict (id) do update set workspace_id = excluded.workspace_id, caller = excluded.caller`,
        [keyId, workspaceId, caller, hashOf(key)],
      )
      return { keyId, key }
    },
    async removeKey(keyId) {
      return (await sql.query('delete from api_keys where id = ? returning id', [keyId])).length > 0
    },
    async removeOtherKeys(workspaceId, caller, keyId) {
      const text = 'delete from api_keys where workspace_id = ? and caller = ? and id <> ?'
      await sql.query(text, [workspaceId, caller, keyId ?? ''])
    },
    async setRights(workspaceId, caller, rights) {
      await sql.query(
        `insert into caller_rights (workspace_id, caller, rights) values (?, ?, ?)
         on conflict (workspace_id, caller) do update set rights = excluded.rights`,
        [workspaceId, caller, rights.join(' ')],
      )
    },
  }
}
