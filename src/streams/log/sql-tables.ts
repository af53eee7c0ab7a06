import type { ColumnTypes } from '../../ledger/store/dialect.ts'
import { leaseColumns } from '../../ledger/store/leases.ts'
import type { Migration } from '../../ledger/store/sql.ts'

/** The room under which these tables are listed among the migrations. */
export const STREAM_ROOM = 'stream'

/** The leases of the final orders. */
export const ORDERS = { table: 'onceonly_stream_orders', key: 'room', keyType: 'text' } as const

/** For tables that are filled at one end and emptied at the other. */
const OFTEN_VACUUMED = 'with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000)'

/** Regions may share a store: each has rows of its own in every table but those of the final order. */
function tables({ text, integer: big }: ColumnTypes, busy: string): readonly string[] {
  return [
    // Locked by every write to the room, so that numbers are given without gaps and in the order of the commits.
    `create table onceonly_stream_rooms (
      region ${text} not null,
      room ${text} not null,
      log ${text} not null,
      at ${big} not null,
      primary key (region, room)
    )`,
    // How far each log was merged, and up to which number its entries have been trimmed.
    `create table onceonly_stream_logs (
      region ${text} not null,
      room ${text} not null,
      log ${text} not null,
      head ${big} not null,
      trimmed ${big} not null,
      primary key (region, room, log)
    )`,
    `create table onceonly_stream_entries (
      region ${text} not null,
      room ${text} not null,
      at ${big} not null,
      log ${text} not null,
      n ${big} not null,
      client ${text} not null,
      epoch ${big} not null,
      cseq ${big} not null,
      copy integer not null,
      digest ${text} not null,
      accepted_at ${big} not null,
      stored_at ${big} not null,
      bytes integer not null,
      rest ${text} not null,
      primary key (region, room, at)
    ) ${busy}`,
    'create unique index onceonly_stream_entries_place on onceonly_stream_entries (region, room, log, n)',
    'create index onceonly_stream_entries_identity on onceonly_stream_entries (region, room, client, epoch, cseq)',
    // What outlives the entries: everything of a sender below the floor was merged here.
    `create table onceonly_stream_senders (
      region ${text} not null,
      room ${text} not null,
      client ${text} not null,
      epoch ${big} not null,
      floor ${big} not null,
      last_log ${text} not null,
      last_n ${big} not null,
      seen_at ${big} not null,
      primary key (region, room, client, epoch)
    )`,
    `create table onceonly_stream_sessions (
      region ${text} not null,
      room ${text} not null,
      client ${text} not null,
      generation ${big} not null,
      instance ${text} not null,
      seen_at ${big} not null,
      primary key (region, room, client)
    )`,
    // The final order of a room: who may add to it, how far it goes, and what it covers.
    `create table onceonly_stream_orders (
      room ${text} primary key,
      ${leaseColumns(text, big)},
      head ${big} not null default 0,
      position ${text} not null default '{}'
    )`,
    `create table onceonly_stream_order_rows (
      room ${text} not null,
      g ${big} not null,
      client ${text} not null,
      epoch ${big} not null,
      cseq ${big} not null,
      added_at ${big} not null,
      primary key (room, g)
    ) ${busy}`,
    'create unique index onceonly_stream_order_identity on onceonly_stream_order_rows (room, client, epoch, cseq)',
  ]
}

/** What clients that live beside a store keep in it. */
function shelves(text: string): readonly string[] {
  return [
    `create table onceonly_stream_storage (
      client ${text} not null,
      name ${text} not null,
      value ${text} not null,
      primary key (client, name)
    )`,
  ]
}

/** When there may be something to remove in a room: found without a look at every room that there ever was. */
function sweeps(big: string): readonly string[] {
  return [
    `alter table onceonly_stream_rooms add column sweep_at ${big} not null default 0`,
    'create index onceonly_stream_rooms_sweep on onceonly_stream_rooms (region, sweep_at)',
  ]
}

/**
 * Messages of servers. Each has a sender of its own, so that these are many and are forgotten earlier than people, by the
 * index. What the senders had of them goes: no version with them was released.
 */
function published({ text, integer: big }: ColumnTypes, busy: string): readonly string[] {
  return [
    `create table onceonly_stream_published (
      region ${text} not null,
      room ${text} not null,
      client ${text} not null,
      digest ${text} not null,
      log ${text} not null,
      n ${big} not null,
      seen_at ${big} not null,
      primary key (region, room, client)
    ) ${busy}`,
    'create index onceonly_stream_published_seen on onceonly_stream_published (region, room, seen_at)',
    "delete from onceonly_stream_senders where client like 'pub~%'",
  ]
}

/** Forward only: append, never change one that was released. */
export const streamTables: readonly Migration[] = [
  {
    version: 1,
    oldestCode: 1,
    up: ({ types, name }) => tables(types, name === 'postgres' ? OFTEN_VACUUMED : ''),
    encrypted: { onceonly_stream_entries: { digest: 'secret', rest: 'secret' } },
  },
  {
    version: 2,
    oldestCode: 1,
    up: ({ types: { text } }) => shelves(text),
    encrypted: { onceonly_stream_storage: { value: 'secret' } },
  },
  {
    version: 3,
    oldestCode: 1,
    up: ({ types: { integer } }) => sweeps(integer),
  },
  {
    version: 4,
    oldestCode: 4,
    up: ({ types, name }) => published(types, name === 'postgres' ? OFTEN_VACUUMED : ''),
    encrypted: { onceonly_stream_published: { digest: 'secret' } },
  },
]
