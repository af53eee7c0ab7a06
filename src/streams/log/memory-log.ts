import { OnceError } from '../../ledger/core/errors.ts'
import { streamLimits } from '../limits.ts'
import { countOf } from '../parts/count.ts'
import type {
  Entered,
  ExchangedEntry,
  Fork,
  FoundPosition,
  PublishedState,
  ReadBound,
  Retention,
  RoomBatch,
  RoomImage,
  RoomLog,
  RoomWritten,
  SenderState,
  SendRequest,
  SendResult,
  SessionClaim,
  StoredEntry,
  Trimmed,
} from '../ports.ts'
import { covers, furthest, missingFrom, withCause } from '../protocol/position.ts'
import type { LogPlace, MessageIdentity, Position } from '../protocol/protocol.ts'
import { identityText } from '../protocol/protocol.ts'
import { isPublisherName, PUBLISHED } from '../protocol/published.ts'
import { forkOf } from './fork.ts'

/**
 * One region's log in memory: for tests, for the simulator, and as the shortest description of what a log must do.
 *
 * @example
 * ```ts
 * import { createMemoryRoomLog } from 'onceonly/stream/ports'
 *
 * const log = createMemoryRoomLog({ region: 'eu', nowMs: Date.now })
 * ```
 */
export function createMemoryRoomLog(options: {
  readonly region: string
  /** The epoch of this log; a region that lost its log must begin another one. */
  readonly epoch?: number
  readonly nowMs: () => number
}): RoomLog {
  const log = `${options.region}.${options.epoch ?? 1}`
  const rooms = new Map<string, MemoryRoom>()

  function at(name: string): MemoryRoom {
    let room = rooms.get(name)
    if (room === undefined) rooms.set(name, (room = new MemoryRoom(log, options.nowMs)))
    return room
  }

  return {
    open: async (room) => ({ log, position: { ...at(room).position }, at: at(room).head }),
    enter: async (room, claim) => at(room).enter(claim),
    write: async (room, batch) => at(room).write(batch),
    find: async (room, position) => at(room).find(position),
    read: async (room, after, bound) => at(room).read(after, bound),
    sender: async (room, client, epoch) => at(room).sender(client, epoch),
    async due(againMs, most) {
      const now = options.nowMs()
      const due = [...rooms].filter(([, room]) => room.dueAtMs <= now).slice(0, most)
      return due.map(([name, room]) => {
        room.dueAtMs = now + againMs
        return name
      })
    },
    trim: async (room, keep) => at(room).trim(keep),
    image: async (room) => at(room).image(),
    adopt: async (room, image) => at(room).adopt(image),
    listen: (room, wake) => at(room).listen(wake),
  }
}

interface Kept {
  readonly entry: StoredEntry
  readonly storedAtMs: number
}

class MemoryRoom {
  position: Position = {}
  head = 0
  /** When there may be something to remove. */
  dueAtMs = 0
  readonly #log: string
  readonly #nowMs: () => number
  /** In order of `at`, the oldest first. */
  readonly #entries: Kept[] = []
  /** By place, where it was merged; by identity, the first copy. */
  readonly #places = new Map<string, number>()
  readonly #identities = new Map<string, StoredEntry>()
  readonly #senders = new Map<string, SenderState & { readonly heardAtMs: number }>()
  /** By their senders, the oldest first. */
  readonly #published = new Map<string, PublishedState & { readonly heardAtMs: number }>()
  readonly #sessions = new Map<string, SessionClaim & { readonly heardAtMs: number }>()
  readonly #listeners = new Set<() => void>()
  /** Everything that this covers may be gone. */
  #removed: Position = {}

  constructor(log: string, nowMs: () => number) {
    this.#log = log
    this.#nowMs = nowMs
  }

  enter(claim: SessionClaim): Entered {
    const held = this.#sessions.get(claim.client)
    if (held !== undefined && held.generation > claim.generation) return { kind: 'fenced', generation: held.generation }
    if (held?.generation === claim.generation && held.instance !== claim.instance) return { kind: 'cloned' }
    this.#sessions.set(claim.client, { ...claim, heardAtMs: this.#nowMs() })
    return { kind: 'entered', sender: this.sender(claim.client, claim.epoch) }
  }

  write({ merged, sends }: RoomBatch): RoomWritten {
    const stored: StoredEntry[] = []
    const forks: Fork[] = []
    for (const entry of merged) {
      const have = countOf(this.position, entry.log)
      if (entry.n <= have) continue
      if (entry.n !== have + 1)
        throw new OnceError('bad_input', `${entry.log} continues at ${have + 1}, not ${entry.n}.`)
      const fork = forkOf(this.#firstOf(entry), entry)
      if (fork !== null) forks.push(fork)
      stored.push(this.#store(entry))
    }
    const results = sends.map((send) => this.#send(send, stored))
    if (stored.length > 0) {
      this.dueAtMs = Math.min(this.dueAtMs, this.#nowMs() + streamLimits.trimEveryMs)
      for (const wake of this.#listeners) wake()
    }
    return { results, stored, forks }
  }

  #send(send: SendRequest, stored: StoredEntry[]): SendResult {
    const { generation, ...message } = send
    const { client, epoch, cseq, seen, replyTo, digest } = message
    if (generation !== null && this.#sessions.get(client)?.generation !== generation) return { kind: 'fenced' }
    const known = this.sender(client, epoch)
    const floor = known?.floor ?? 1
    if (cseq > floor) return { kind: 'gap', floor }
    if (cseq < floor) {
      const first = this.#firstOf(send)
      if (first === undefined) return { kind: 'accepted', place: null, duplicate: true }
      if (first.digest !== digest) return { kind: 'fork' }
      return { kind: 'accepted', place: { log: first.log, n: first.n }, duplicate: true }
    }
    const target = replyTo === null ? null : this.#targetOf(replyTo)
    if (target === undefined) return { kind: 'target-unknown' }
    const place = { log: this.#log, n: countOf(this.position, this.#log) + 1 }
    const after = known?.last ?? null
    const acceptedAtMs = Math.floor(this.#nowMs())
    const context = withCause(seen, target)
    stored.push(this.#store({ ...message, ...place, seen: context, after, acceptedAtMs }))
    return { kind: 'accepted', place, duplicate: false }
  }

  /** Where it stands; once it was trimmed, a later message of its sender, which has it among its causes. */
  #targetOf(identity: MessageIdentity): LogPlace | undefined {
    const sender = this.sender(identity.client, identity.epoch)
    if (sender === null || identity.cseq >= sender.floor) return undefined
    const first = this.#firstOf(identity)
    return first === undefined ? sender.last : { log: first.log, n: first.n }
  }

  /** The first copy: while it is kept, and of a server's message longer. */
  #firstOf(identity: MessageIdentity): (LogPlace & { readonly digest: string }) | undefined {
    const published = this.#published.get(identity.client)
    if (published === undefined) return this.#identities.get(identityText(identity))
    return { ...published.place, digest: published.digest }
  }

  #store(from: ExchangedEntry): StoredEntry {
    const { client, epoch, digest } = from
    const floor = this.sender(client, epoch)?.floor ?? 1
    // Every log has a client's messages in their order, so that whatever is below the floor was merged before.
    const entry: StoredEntry = { ...from, at: ++this.head, copy: from.cseq < floor }
    const storedAtMs = this.#nowMs()
    this.#entries.push({ entry, storedAtMs })
    this.#places.set(placeText(entry.log, entry.n), entry.at)
    this.position = { ...this.position, [entry.log]: entry.n }
    if (!entry.copy) {
      this.#identities.set(identityText(entry), entry)
      const place = { log: entry.log, n: entry.n }
      const heardAtMs = storedAtMs
      if (isPublisherName(client)) this.#published.set(client, { client, digest, place, heardAtMs })
      else this.#senders.set(`${client}/${epoch}`, { floor: entry.cseq + 1, last: place, heardAtMs })
    }
    return entry
  }

  find(position: Position): FoundPosition {
    if (!covers(position, this.#removed)) return { kind: 'expired', removed: this.#removed }
    let next = this.head + 1
    for (const log in this.position) {
      const at = this.#places.get(placeText(log, countOf(position, log) + 1))
      if (at !== undefined && at < next) next = at
    }
    return { kind: 'found', at: next - 1 }
  }

  read(after: number, { entries, bytes }: ReadBound): readonly StoredEntry[] {
    const first = this.#entries[0]?.entry.at ?? this.head + 1
    const from = Math.max(0, after + 1 - first)
    const found: StoredEntry[] = []
    let size = 0
    for (const { entry } of this.#entries.slice(from, from + entries)) {
      size += JSON.stringify(entry.body).length
      if (found.length > 0 && size > bytes) break
      found.push(entry)
    }
    return found
  }

  sender(client: string, epoch: number): SenderState | null {
    const published = this.#published.get(client)
    if (published !== undefined) return { floor: PUBLISHED.cseq + 1, last: published.place }
    const known = this.#senders.get(`${client}/${epoch}`)
    return known === undefined ? null : { floor: known.floor, last: known.last }
  }

  trim({ olderThanMs, mostEntries, clientsMs, publishedMs, mostPublished }: Retention): Trimmed {
    const now = this.#nowMs()
    const before = now - olderThanMs
    const surplus = this.#entries.length - mostEntries
    let removed = 0
    for (const { entry, storedAtMs } of this.#entries) {
      if (removed >= surplus && storedAtMs >= before) break
      removed += 1
      this.#places.delete(placeText(entry.log, entry.n))
      if (!entry.copy) this.#identities.delete(identityText(entry))
      this.#removed = furthest(this.#removed, { [entry.log]: entry.n })
    }
    this.#entries.splice(0, removed)
    const forgetBefore = now - clientsMs
    for (const known of [this.#senders, this.#sessions]) {
      for (const [client, { heardAtMs }] of known) if (heardAtMs < forgetBefore) known.delete(client)
    }
    this.#forgetPublished(now - publishedMs, mostPublished)
    if (this.#entries.length === 0) {
      const [first] = this.#published.values()
      let dueAtMs = Math.min(now + clientsMs, (first?.heardAtMs ?? now) + publishedMs)
      for (const known of [this.#senders, this.#sessions]) {
        for (const { heardAtMs } of known.values()) dueAtMs = Math.min(dueAtMs, heardAtMs + clientsMs)
      }
      this.dueAtMs = removed > 0 ? now + streamLimits.orderRetainMs : dueAtMs
    }
    return { removed, more: false }
  }

  /** As many as may be known, counted from the newest; those of the same moment stay together. */
  #forgetPublished(beforeMs: number, most: number): void {
    const times = [...this.#published.values()].map(({ heardAtMs }) => heardAtMs)
    const before = Math.max(beforeMs, times[times.length - most] ?? Number.NEGATIVE_INFINITY)
    for (const [client, { heardAtMs }] of this.#published) if (heardAtMs < before) this.#published.delete(client)
  }

  image(): RoomImage {
    const senders = [...this.#senders].map(([sender, { floor, last }]) => {
      const slash = sender.indexOf('/')
      return { client: sender.slice(0, slash), epoch: Number(sender.slice(slash + 1)), floor, last }
    })
    const published = [...this.#published.values()].map(({ client, digest, place }) => ({ client, digest, place }))
    return { position: { ...this.position }, senders, published }
  }

  adopt({ position, senders, published }: RoomImage): void {
    const { [this.#log]: _, ...others } = position
    const further = missingFrom(this.position, others)
    this.position = furthest(this.position, further)
    this.#removed = furthest(this.#removed, further)
    for (const { client, epoch, floor, last } of senders) {
      const known = this.#senders.get(`${client}/${epoch}`)
      if (known === undefined || known.floor < floor) {
        this.#senders.set(`${client}/${epoch}`, { floor, last, heardAtMs: this.#nowMs() })
      }
    }
    for (const each of published) {
      if (!this.#published.has(each.client)) this.#published.set(each.client, { ...each, heardAtMs: this.#nowMs() })
    }
  }

  listen(wake: () => void): { stop(): void } {
    this.#listeners.add(wake)
    return { stop: () => void this.#listeners.delete(wake) }
  }
}

function placeText(log: string, n: number): string {
  return `${n} ${log}`
}
