const tables = (big: string) => [
  // Who came first under the name of a client: the name stands in every message, for everybody to read.
  `create table chat_clients (
    workspace_id text not null,
    client text not null,
    caller text not null,
    seen_at ${big} not null,
    primary key (workspace_id, client)
  )`,
  'create index chat_clients_seen on chat_clients (seen_at)',
]

/** Beside the rooms, which streams keep for themselves. */
export const migrations = [
  { version: 1, oldestCode: 1, up: { sqlite: tables('integer'), postgres: tables('bigint') } },
] as const
