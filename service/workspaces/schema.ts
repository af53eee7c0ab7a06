import type { Migrations } from '../store.ts'

const tables = [
  'create table workspaces (id text primary key, name text not null)',
  // Keys are stored hashed: a reader of the table cannot use them.
  `create table api_keys (
    id text primary key,
    workspace_id text not null references workspaces (id),
    caller text not null,
    hash text not null
  )`,
  // No row means every right; a row lists those that are left.
  `create table caller_rights (
    workspace_id text not null,
    caller text not null,
    rights text not null,
    primary key (workspace_id, caller)
  )`,
]

export const migrations: Migrations = [{ version: 1, oldestCode: 1, up: () => tables }]
