import type { StreamBounds } from '../bounds.ts'
import { countOf } from '../parts/count.ts'
import type { RoomLog, StoredEntry } from '../ports.ts'
import { deliveredText } from '../protocol/codec.ts'
import type { Delivered, Position } from '../protocol/protocol.ts'
import type { ChannelLink } from './connection.ts'
import { deliveredOf } from './delivered.ts'
import { createReading } from './reading.ts'
import type { Room } from './room.ts'

/** A client as a cursor in the room's log: nothing is queued for it, it is only remembered how far it is. */
export interface Feed {
  /** What the client has, once it took all that was sent. */
  readonly position: Position
  /** Entries, in all. */
  readonly sent: number
  /** From here on; whatever was under way for an earlier start is forgotten. */
  start(at: number, position: Position): void
  /** The client has taken so many entries in all. False when that is more than were sent. */
  credit(taken: number): boolean
  /** Sends what may be sent. */
  pump(): void
  stop(): void
}

export interface FeedOptions {
  readonly room: Room
  readonly log: RoomLog
  readonly link: ChannelLink
  readonly bounds: StreamBounds
  readonly generation: number
  /** The log does not go back so far any more. */
  expired(): void
  failed(error: unknown): void
}

export function createFeed({ room, log, link, bounds, generation, expired, failed }: FeedOptions): Feed {
  const reading = createReading(pump, failed)
  /** Every entry up to it was looked at. */
  let at = 0
  /** What the client has, once it took all that was sent. */
  let position: Record<string, number> = {}
  let sent = 0
  let taken = 0
  /**
   * Bytes of what was sent and not taken: those of a frame with its last entry. The client counts in the same way; else one
   * end would wait for credit that the other one does not owe yet.
   */
  const ahead: number[] = []
  let aheadBytes = 0

  function mayRead(): boolean {
    return (
      reading.isReady &&
      at < room.tail.head &&
      sent - taken < bounds.aheadEntries &&
      aheadBytes < bounds.aheadBytes &&
      link.bufferedBytes < bounds.linkBytes
    )
  }

  /** Puts as many as fit into one frame. Entries that the client has from another region are passed over. */
  function send(entries: readonly StoredEntry[]): void {
    const delivered: Delivered[] = []
    let bytes = 0
    for (const entry of entries) {
      if (delivered.length >= bounds.aheadEntries - (sent - taken)) break
      at = entry.at
      if (entry.n <= countOf(position, entry.log)) continue
      const next = deliveredOf(entry)
      position[entry.log] = entry.n
      delivered.push(next)
      // As JSON, which is about as large as any form of it.
      bytes += deliveredText(next).length
      if (bytes >= bounds.deliverBytes) break
    }
    if (delivered.length === 0) return
    const frameBytes = link.send({ kind: 'deliver', generation, after: sent, entries: delivered })
    for (let left = delivered.length; left > 0; left--) ahead.push(left > 1 ? 0 : frameBytes)
    sent += delivered.length
    aheadBytes += frameBytes
  }

  function sendRead(entries: readonly StoredEntry[]): void {
    const [first] = entries
    if (first !== undefined && first.at === at + 1) send(entries)
    else if (at < room.tail.head) {
      reading.stop()
      expired()
    }
  }

  function readStored(): Promise<readonly StoredEntry[]> {
    return log.read(room.name, at, { entries: bounds.deliverEntries, bytes: bounds.deliverBytes })
  }

  function pump(): void {
    while (mayRead()) {
      const entries = room.tail.after(at, bounds.deliverEntries)
      if (entries === null) return void reading.read(readStored, sendRead)
      send(entries)
    }
  }

  return {
    get position() {
      return { ...position }
    },
    get sent() {
      return sent
    },
    start(from, have) {
      reading.start()
      at = from
      position = { ...have }
      pump()
    },
    credit(total) {
      if (total > sent) return false
      for (; taken < total; taken++) aheadBytes -= ahead.shift() ?? 0
      pump()
      return true
    },
    pump,
    stop: reading.stop,
  }
}
