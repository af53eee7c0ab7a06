import { OnceError } from '../../ledger/core/errors.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { sleep } from '../../runtime/runtime.ts'
import type { StreamBounds } from '../bounds.ts'
import { CausalBuffer } from '../parts/causal.ts'
import { countOf } from '../parts/count.ts'
import type { ExchangedEntry, Fork, RoomImage, RoomLog, SendRequest, SendResult, StoredEntry } from '../ports.ts'
import { deliveredText } from '../protocol/codec.ts'
import type { Position } from '../protocol/protocol.ts'
import { deliveredOf } from './delivered.ts'
import { Tail } from './tail.ts'

/**
 * One room in one region: messages of clients and of peers are written in one order, one transaction at a time, and only
 * durable ones are delivered. All memory here can be lost: it is read, or pulled, again.
 */
export interface Room {
  readonly name: string
  readonly ownLog: string
  /** What is durable here. */
  readonly position: Position
  /** What is durable, or will be with the next writes: whatever is pulled comes after it. */
  readonly reached: Position
  /** What entries that have come are waiting for. */
  readonly missing: Position
  readonly tail: Tail<StoredEntry>
  readonly members: number
  /** More sends wait than the log can keep up with. */
  readonly full: boolean
  /**
   * As much of other logs waits as one write takes: more would only lie in memory, and can be pulled when it is wanted.
   */
  readonly crowded: boolean
  /** Throws when the room was stopped: the caller opens it again. */
  join(member: RoomMember): () => void
  /** Calls whenever the position has grown, until the watch is ended; a watcher is not a member. */
  watch(advanced: () => void): () => void
  /** Accepts a message whose causes are covered by `position`, which the caller has checked. The answer is durable. */
  send(send: WaitingSend): void
  /** Entries of other logs, in any order, any number of times. */
  offer(entries: readonly ExchangedEntry[]): void
  /** Adopts the snapshot of a peer whose log does not go back as far as this room needs. */
  adopt(image: RoomImage): void
  /** Another process of this region may have written. */
  look(): void
  /**
   * Has read whatever any process had written by the call. Rejects when the log cannot be read now, or the room stops.
   */
  catchUp(): Promise<void>
  stop(): void
}

/** A session that follows the room in this process. */
export interface RoomMember {
  /** The position has grown. */
  advanced(): void
  /** Answers to sends have been given. */
  answered(): void
  /** The room adopted a peer's snapshot: some entries that its position covers were never here and will not come. */
  adopted(): void
}

export interface RoomOptions {
  readonly name: string
  readonly log: RoomLog
  readonly runtime: Runtime
  readonly bounds: StreamBounds
  /** Entries of this region's own log have become durable. */
  accepted(entries: readonly StoredEntry[]): void
  /** A peer accepted other words under a number that has some here. */
  forked(fork: Fork): void
  /** The log failed; it is tried again. */
  failed(error: unknown): void
}

/** A message that is not durable yet. */
export interface WaitingSend {
  readonly request: SendRequest
  /** What it takes in memory, about. */
  readonly bytes: number
  answer(result: SendResult): void
}

export async function openRoom(options: RoomOptions): Promise<Room> {
  const { name, log, runtime, bounds } = options
  const opened = await log.open(name)
  const ownLog = opened.log
  const sizeOf = (entry: StoredEntry) => deliveredText(deliveredOf(entry)).length
  const tail = new Tail<StoredEntry>({ most: bounds.tailEntries, mostBytes: bounds.tailBytes, sizeOf }, opened.at)
  const members = new Set<RoomMember>()
  const watchers = new Set<() => void>()
  let position = opened.position
  /** Puts entries of other logs behind their causes. It runs ahead of the log by what is still to be written. */
  let buffer = bufferFrom(position)
  let ready: ExchangedEntry[] = []
  const sends: WaitingSend[] = []
  let sendsBytes = 0
  let image: RoomImage | null = null
  let look = false
  /** Callers that wait for the next poll. */
  let lookers: PromiseWithResolvers<void>[] = []
  let busy = false
  let stopped = false

  function bufferFrom(delivered: Position): CausalBuffer<ExchangedEntry> {
    return new CausalBuffer({
      delivered,
      mostBuffered: bounds.waitingEntries,
      mostBufferedBytes: bounds.waitingBytes,
      sizeOf: (entry) => JSON.stringify(entry).length,
    })
  }

  function merge(entry: ExchangedEntry): void {
    const clock: Record<string, number> = { ...entry.seen, [entry.log]: entry.n }
    // The sender's previous message comes first, also when it was accepted elsewhere and the sender has not seen it
    // there.
    if (entry.after !== null && entry.after.log !== entry.log) {
      clock[entry.after.log] = Math.max(countOf(clock, entry.after.log), entry.after.n)
    }
    const arrival = buffer.receive({ sender: entry.log, clock, message: entry })
    if (arrival.kind !== 'delivered') return
    for (const { message } of arrival.messages) {
      if (message.n > countOf(position, message.log)) ready.push(message)
    }
  }

  function show(entries: readonly StoredEntry[]): void {
    const further: Record<string, number> = { ...position }
    for (const entry of entries) {
      further[entry.log] = entry.n
      tail.push(entry)
    }
    position = further
    // Own entries, and those that another process wrote, free what waits for them.
    for (const entry of entries) merge(entry)
    notifyMembers()
  }

  function notifyMembers(): void {
    for (const member of members) member.advanced()
    for (const advanced of watchers) advanced()
  }

  /** Restarts from what is durable. */
  async function reopen(): Promise<void> {
    const now = await log.open(name)
    if (stopped) return
    position = now.position
    ready = []
    buffer = bufferFrom(position)
    tail.restart(now.at)
    notifyMembers()
  }

  async function readOn(): Promise<void> {
    const bound = { entries: bounds.tailEntries, bytes: bounds.pullBytes }
    for (;;) {
      const entries = await log.read(name, tail.head, bound)
      const [first] = entries
      if (first === undefined || stopped) return
      // After a long pause some of them may have been removed.
      if (first.at !== tail.head + 1) return reopen()
      show(entries)
    }
  }

  async function lookOn(): Promise<void> {
    const waiting = lookers
    lookers = []
    try {
      await readOn()
      for (const looker of waiting) looker.resolve()
    } catch (error) {
      for (const looker of waiting) looker.reject(error)
      throw error
    }
  }

  /** Shows what was stored. Other processes may have stored entries between: then all of it is read. */
  async function take(stored: readonly StoredEntry[]): Promise<void> {
    const [first] = stored
    const last = stored.at(-1)
    if (first === undefined || last === undefined) return
    if (first.at === tail.head + 1 && last.at === tail.head + stored.length) show(stored)
    else await readOn()
    const own = stored.filter((entry) => entry.log === ownLog)
    if (own.length > 0) options.accepted(own)
  }

  /** One step, whatever is to be done most urgently. */
  async function step(): Promise<void> {
    if (image !== null) {
      const adopted = image
      image = null
      await log.adopt(name, adopted)
      await reopen()
      for (const member of members) member.adopted()
      return
    }
    if (look) {
      look = false
      await lookOn()
    }
    const merged = ready.slice(0, bounds.writeEntries)
    const accepted = sends.slice(0, bounds.writeEntries)
    if (merged.length === 0 && accepted.length === 0) return
    const written = await log.write(name, { merged, sends: accepted.map(({ request }) => request) })
    if (stopped) return
    ready.splice(0, merged.length)
    sends.splice(0, accepted.length)
    for (const { bytes } of accepted) sendsBytes -= bytes
    // Delivered before it is acknowledged: an acknowledged author finds the room at least as far.
    await take(written.stored)
    for (const [index, result] of written.results.entries()) accepted[index]?.answer(result)
    for (const fork of written.forks) options.forked(fork)
    if (accepted.length > 0) for (const member of members) member.answered()
  }

  async function work(): Promise<void> {
    for (let failures = 0; wanted(); ) {
      try {
        await step()
        failures = 0
      } catch (error) {
        options.failed(error)
        failures += 1
        await sleep(runtime, Math.min(bounds.storeRetryCapMs, bounds.storeRetryBaseMs * 2 ** (failures - 1)), true)
        // It may have been written or not. Sends are simply repeated; what was merged is pulled again.
        await reopen().catch((again: unknown) => options.failed(again))
      }
    }
  }

  function wanted(): boolean {
    return !stopped && (ready.length > 0 || sends.length > 0 || look || image !== null)
  }

  function wake(): void {
    if (busy || !wanted()) return
    busy = true
    // Soon, not now: the sends of a window arrive in one piece, and its first shall not take a commit for itself alone.
    runtime.soon(() => {
      void work().finally(() => {
        busy = false
        // Something may have come between the last look and here.
        wake()
      })
    })
  }

  const listening = log.listen(name, () => {
    if (busy) return
    look = true
    wake()
  })

  return {
    name,
    ownLog,
    tail,
    get position() {
      return position
    },
    get reached() {
      return buffer.delivered
    },
    get missing() {
      return buffer.missing
    },
    get members() {
      return members.size
    },
    get full() {
      return sends.length >= bounds.writeQueue || sendsBytes >= bounds.writeQueueBytes
    },
    get crowded() {
      return ready.length >= bounds.writeEntries
    },
    watch(advanced) {
      watchers.add(advanced)
      return () => void watchers.delete(advanced)
    },
    join(member) {
      if (stopped) throw closed(name)
      members.add(member)
      return () => void members.delete(member)
    },
    send(send) {
      sends.push(send)
      sendsBytes += send.bytes
      wake()
    },
    offer(entries) {
      for (const entry of entries) if (entry.log !== ownLog) merge(entry)
      wake()
    },
    adopt(given) {
      image = given
      wake()
    },
    look() {
      look = true
      wake()
    },
    catchUp() {
      if (stopped) return Promise.reject(closed(name))
      const looker = Promise.withResolvers<void>()
      lookers.push(looker)
      look = true
      wake()
      return looker.promise
    },
    stop() {
      stopped = true
      for (const looker of lookers) looker.reject(closed(name))
      lookers = []
      listening.stop()
      members.clear()
      watchers.clear()
    },
  }
}

function closed(name: string): OnceError {
  return new OnceError('stopped', `The room ${name} was closed.`, { next: 'Open the room again.' })
}
