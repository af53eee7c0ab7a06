import { OnceError } from '../../ledger/core/errors.ts'
import type { RowOf, SqlSeam, SqlTx } from '../../ledger/store/sql.ts'
import { streamLimits } from '../limits.ts'
import type { PublishedState, RoomBatch, StoredEntry } from '../ports.ts'
import { identityText, type LogPlace, type MessageIdentity } from '../protocol/protocol.ts'
import { isPublisherName, PUBLISHED } from '../protocol/published.ts'
import { big, elementOf, elements, joining, publishedElement, text } from './sql-rows.ts'

export interface RoomWrite {
  readonly room: string
  readonly batch: RoomBatch
}

/** A sender, as the transaction sees and changes it. */
export interface SenderRow {
  floor: number
  last: LogPlace
  changed: boolean
}

/** One room in the middle of a write: what stood there, and what has been added. */
export interface OpenRoom {
  readonly room: string
  /** The region's own log. */
  readonly log: string
  at: number
  readonly heads: Map<string, number>
  readonly changedLogs: Set<string>
  readonly senders: Map<string, SenderRow>
  /** Messages of servers that are new: their senders are in no other table. */
  readonly published: PublishedState[]
  /** The generation that each client has entered with. */
  readonly sessions: Map<string, number>
  /** By identity: entries that were merged first, of those that were asked for again. */
  readonly known: Map<string, { readonly place: LogPlace; readonly digest: string }>
  readonly stored: StoredEntry[]
}

export const senderKey = (client: string, epoch: number) => `${client}/${epoch}`

/** Reads and writes the state of some rooms in a handful of statements, however many messages there are. */
export interface RoomStates {
  /** Locks the rooms, in the order of their names, and reads what the writes ask about. */
  open(
    tx: SqlTx,
    writes: readonly RoomWrite[],
  ): Promise<{ readonly now: number; readonly rooms: Map<string, OpenRoom> }>
  close(tx: SqlTx, rooms: readonly OpenRoom[]): Promise<void>
}

export function createRoomStates(sql: SqlSeam, region: string, newLog: () => string, wake: string): RoomStates {
  const { dialect, now } = sql
  const from = `from ${elements(dialect)}`
  const join = joining(dialect)
  const hold = dialect.lock('for update of r')
  const lock = `select r.room, r.log, r.at ${from}
    ${join} onceonly_stream_rooms as r on r.region = ? and r.room = ${text('room')} order by r.room ${hold}`
  const begin = `insert into onceonly_stream_rooms (region, room, log, at)
    select ?, ${text('room')}, ?, 0 ${from} where true order by ${text('room')} on conflict do nothing`
  const readLogs = `select l.room, l.log, l.head, (select ${now}) as now ${from}
    left join onceonly_stream_logs as l on l.region = ? and l.room = ${text('room')}`
  const readSenders = `select s.room, s.client, s.epoch, s.floor, s.last_log, s.last_n ${from}
    ${join} onceonly_stream_senders as s on s.region = ? and s.room = ${text('room')}
      and s.client = ${text('client')} and s.epoch = ${big('epoch')}`
  const readPublished = `select p.room, p.client, p.digest, p.log, p.n ${from}
    ${join} onceonly_stream_published as p on p.region = ? and p.room = ${text('room')} and p.client = ${text('client')}`
  const readSessions = `select s.room, s.client, s.generation ${from}
    ${join} onceonly_stream_sessions as s on s.region = ? and s.room = ${text('room')} and s.client = ${text('client')}`
  const readKnown = `select k.room, k.client, k.epoch, k.cseq, k.log, k.n, k.digest ${from}
    ${join} onceonly_stream_entries as k on k.region = ? and k.room = ${text('room')} and k.client = ${text('client')}
      and k.epoch = ${big('epoch')} and k.cseq = ${big('cseq')} and k.copy = 0`
  const addEntries = `insert into onceonly_stream_entries
      (region, room, at, log, n, client, epoch, cseq, copy, digest, accepted_at, stored_at, bytes, rest)
    select ?, ${text('room')}, ${big('at')}, ${text('log')}, ${big('n')}, ${text('client')}, ${big('epoch')},
      ${big('cseq')}, ${big('copy')}, ${text('digest')}, ${big('acceptedAtMs')}, (select ${now}), ${big('bytes')},
      ${text('rest')} ${from} where true order by ${big('at')}`
  const saveLogs = `insert into onceonly_stream_logs (region, room, log, head, trimmed)
    select ?, ${text('room')}, ${text('log')}, ${big('head')}, 0 ${from} where true
    on conflict (region, room, log) do update set head = excluded.head`
  const saveSenders = `insert into onceonly_stream_senders
      (region, room, client, epoch, floor, last_log, last_n, seen_at)
    select ?, ${text('room')}, ${text('client')}, ${big('epoch')}, ${big('floor')}, ${text('log')}, ${big('n')},
      (select ${now}) ${from} where true
    on conflict (region, room, client, epoch) do update set floor = excluded.floor, last_log = excluded.last_log,
      last_n = excluded.last_n, seen_at = excluded.seen_at`
  const savePublished = `insert into onceonly_stream_published (region, room, client, digest, log, n, seen_at)
    select ?, ${text('room')}, ${text('client')}, ${text('digest')}, ${text('log')}, ${big('n')}, (select ${now})
      ${from} where true on conflict do nothing`
  // Only a room that was empty is looked at earlier: what does not change costs nothing in the index.
  const soon = `(${now} + ${streamLimits.trimEveryMs})`
  const saveRoom = `update onceonly_stream_rooms set at = ?,
      sweep_at = case when sweep_at > ${soon} then ${soon} else sweep_at end where region = ? and room = ? returning ${wake} as woken`

  async function lockRooms(tx: SqlTx, names: readonly string[]): Promise<Map<string, OpenRoom>> {
    const list = JSON.stringify(names.map((room) => ({ room })))
    let rows = await tx.query<{ room: string; log: string; at: unknown }>(lock, [list, region])
    if (rows.length < names.length) {
      await tx.query(begin, [region, newLog(), list])
      rows = await tx.query(lock, [list, region])
    }
    return new Map(rows.map(({ room, log, at }) => [room, { ...emptyRoom(room, log), at: Number(at) }]))
  }

  async function readLogHeads(tx: SqlTx, rooms: Map<string, OpenRoom>): Promise<number> {
    const list = JSON.stringify([...rooms.keys()].map((room) => ({ room })))
    const rows = await tx.query<LogRow>(readLogs, [list, region])
    for (const { room, log, head } of rows) {
      if (room !== null && log !== null) roomOf(rooms, room).heads.set(log, Number(head))
    }
    return Number(rows[0]?.now)
  }

  async function readClients(tx: SqlTx, rooms: Map<string, OpenRoom>, writes: readonly RoomWrite[]): Promise<void> {
    const wanted = new Map<string, { room: string; client: string; epoch: number }>()
    const published = new Map<string, { room: string; client: string }>()
    const asking = new Map<string, { room: string; client: string }>()
    for (const { room, batch } of writes) {
      for (const { client, epoch } of [...batch.merged, ...batch.sends, ...targetsOf(batch)]) {
        if (isPublisherName(client)) published.set(`${room}/${client}`, { room, client })
        else wanted.set(`${room}/${client}/${epoch}`, { room, client, epoch })
      }
      for (const { client, generation } of batch.sends) {
        if (generation !== null) asking.set(`${room}/${client}`, { room, client })
      }
    }
    if (published.size > 0) await readServers(tx, rooms, [...published.values()])
    if (wanted.size === 0) return
    const senders = await tx.query<SenderRead>(readSenders, [JSON.stringify([...wanted.values()]), region])
    for (const { room, client, epoch, floor, last_log, last_n } of senders) {
      const last = { log: last_log, n: Number(last_n) }
      const row = { floor: Number(floor), last, changed: false }
      roomOf(rooms, room).senders.set(senderKey(client, Number(epoch)), row)
    }
    if (asking.size === 0) return
    const sessions = await tx.query<SessionRead>(readSessions, [JSON.stringify([...asking.values()]), region])
    for (const { room, client, generation } of sessions) {
      roomOf(rooms, room).sessions.set(client, Number(generation))
    }
  }

  /** A server's message is known whole, also when its entry is gone. */
  async function readServers(tx: SqlTx, rooms: Map<string, OpenRoom>, wanted: readonly object[]): Promise<void> {
    const rows = await tx.query<PublishedRead>(readPublished, [JSON.stringify(wanted), region])
    for (const { room, client, digest, log, n } of rows) {
      const open = roomOf(rooms, room)
      const place = { log, n: Number(n) }
      open.senders.set(senderKey(client, PUBLISHED.epoch), { floor: PUBLISHED.cseq + 1, last: place, changed: false })
      open.known.set(identityText({ client, ...PUBLISHED }), { place, digest })
    }
  }

  /** Only what was sent or merged before is looked up: in the ordinary course of things, what is replied to. */
  async function readCopies(tx: SqlTx, rooms: Map<string, OpenRoom>, writes: readonly RoomWrite[]): Promise<void> {
    const again: (MessageIdentity & { room: string })[] = []
    for (const { room, batch } of writes) {
      for (const { client, epoch, cseq } of [...batch.merged, ...batch.sends, ...targetsOf(batch)]) {
        const floor = roomOf(rooms, room).senders.get(senderKey(client, epoch))?.floor ?? 1
        if (cseq < floor && !isPublisherName(client)) again.push({ room, client, epoch, cseq })
      }
    }
    if (again.length === 0) return
    const rows = await tx.query<KnownRead>(readKnown, [JSON.stringify(again), region])
    for (const { room, client, epoch, cseq, log, n, digest } of rows) {
      const identity = identityText({ client, epoch: Number(epoch), cseq: Number(cseq) })
      roomOf(rooms, room).known.set(identity, { place: { log, n: Number(n) }, digest })
    }
  }

  return {
    async open(tx, writes) {
      const rooms = await lockRooms(tx, [...new Set(writes.map(({ room }) => room))].sort())
      const time = await readLogHeads(tx, rooms)
      await readClients(tx, rooms, writes)
      await readCopies(tx, rooms, writes)
      return { now: time, rooms }
    },
    async close(tx, rooms) {
      const changed = rooms.filter(({ stored }) => stored.length > 0)
      if (changed.length === 0) return
      const entries = changed.flatMap(({ room, stored }) => stored.map((entry) => elementOf(sql, room, entry)))
      await tx.query(addEntries, [region, JSON.stringify(entries)])
      const logs = changed.flatMap(({ room, heads, changedLogs }) =>
        [...changedLogs].map((log) => ({ room, log, head: heads.get(log) })),
      )
      await tx.query(saveLogs, [region, JSON.stringify(logs)])
      const senders = changed.flatMap(({ room, senders: all }) =>
        [...all].filter(([, { changed: is }]) => is).map(([key, row]) => ({ room, ...named(key), ...saved(row) })),
      )
      if (senders.length > 0) await tx.query(saveSenders, [region, JSON.stringify(senders)])
      const published = changed.flatMap(({ room, published: all }) =>
        all.map((each) => publishedElement(sql, room, each)),
      )
      if (published.length > 0) await tx.query(savePublished, [region, JSON.stringify(published)])
      for (const { room, at } of changed) await tx.query(saveRoom, [at, region, room])
    },
  }
}

type LogRow = RowOf<never, 'head' | 'now', 'room' | 'log'>

type SenderRead = RowOf<'room' | 'client' | 'last_log', 'epoch' | 'floor' | 'last_n'>

type PublishedRead = RowOf<'room' | 'client' | 'digest' | 'log', 'n'>

type SessionRead = RowOf<'room' | 'client', 'generation'>

type KnownRead = RowOf<'room' | 'client' | 'log' | 'digest', 'epoch' | 'cseq' | 'n'>

/** What the sends of a batch reply to. */
function targetsOf({ sends }: RoomBatch): readonly MessageIdentity[] {
  return sends.flatMap(({ replyTo }) => replyTo ?? [])
}

function emptyRoom(room: string, log: string): OpenRoom {
  return {
    room,
    log,
    at: 0,
    heads: new Map(),
    changedLogs: new Set(),
    senders: new Map(),
    published: [],
    sessions: new Map(),
    known: new Map(),
    stored: [],
  }
}

export function roomOf(rooms: ReadonlyMap<string, OpenRoom>, room: string): OpenRoom {
  const found = rooms.get(room)
  if (found === undefined) throw new OnceError('store_unavailable', `The room ${room} could not be opened.`)
  return found
}

function named(key: string): { client: string; epoch: number } {
  const end = key.lastIndexOf('/')
  return { client: key.slice(0, end), epoch: Number(key.slice(end + 1)) }
}

function saved({ floor, last: { log, n } }: SenderRow) {
  return { floor, log, n }
}
