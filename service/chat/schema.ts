import type { Migrations } from '../store.ts'
import { counting } from '../workspaces/usage.ts'

const tables = (big: string) => [
  // The first owner of a client's name: the name stands in every message, for all to read.
  `create table chat_clients (
    workspace_id text not null,
    client text not null,
    caller text not null,
    seen_at ${big} not null,
    primary key (workspace_id, client)
  )`,
  'create index chat_clients_seen on chat_clients (seen_at)',
  // The rooms of each workspace: streams know them under other names, which do not reveal their workspace.
  `create table chat_rooms (
    workspace_id text not null,
    room text not null,
    seen_at ${big} not null,
    primary key (workspace_id, room)
  )`,
  'create index chat_rooms_seen on chat_rooms (seen_at)',
]

const counts = (['chat_rooms', 'chat_clients'] as const).map((table) =>
  counting({
    table,
    workspace: (row) => `${row}.workspace_id`,
    amounts: [{ quota: table === 'chat_rooms' ? 'rooms' : 'clients', amount: () => '1' }],
  }),
)

/** Beside the rooms, which streams keep for themselves. */
export const migrations: Migrations = [
  {
    version: 1,
    oldestCode: 1,
    encrypted: { chat_clients: { caller: 'secret' } },
    up: ({ name, types }) => [...tables(types.integer), ...counts.flatMap((count) => count[name])],
  },
]
