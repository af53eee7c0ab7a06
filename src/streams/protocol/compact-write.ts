import { countOf } from '../parts/count.ts'
import { sessionLimits } from '../session-limits.ts'
import {
  addSender,
  CHANNEL_STEP,
  compactKinds,
  createNumbers,
  flags,
  freeNumber,
  type KnownSender,
  LOGS_PER_BYTE,
  near,
  noteEntry,
  type SessionNumbers,
} from './numbers.ts'
import type {
  Delivered,
  DeliverFrame,
  LogPlace,
  MessageIdentity,
  OrderFrame,
  Position,
  ServerFrame,
} from './protocol.ts'

/** A writer also looks people up by their names. */
export interface WrittenNumbers extends SessionNumbers {
  readonly senderNumbers: Map<string, number>
}

export function createWrittenNumbers(): WrittenNumbers {
  return { ...createNumbers(), senderNumbers: new Map() }
}

const START_BYTES = 1_024
/** A buffer that grew past it is given back. */
const KEPT_BYTES = 64 * 1_024
/** A UTF-16 unit takes at most so many bytes. */
const UTF8_MOST = 3
/** A number takes at most so many bytes. */
const COUNT_MOST = 8

const encoder = new TextEncoder()

/** Writes one frame after the other. */
export class ByteWriter {
  #bytes = new Uint8Array(START_BYTES)
  #at = 0

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return
    const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.#at + bytes))
    larger.set(this.#bytes.subarray(0, this.#at))
    this.#bytes = larger
  }

  byte(value: number): void {
    this.#room(1)
    this.#bytes[this.#at++] = value
  }

  /** A byte whose value is known later; `set` takes what this returned. */
  later(): number {
    this.byte(0)
    return this.#at - 1
  }

  set(at: number, value: number): void {
    this.#bytes[at] = value
  }

  /** A whole number from 0 on, seven bits at a time, the low ones first. */
  count(value: number): void {
    this.#room(COUNT_MOST)
    let rest = value
    while (rest >= 0x80) {
      this.#bytes[this.#at++] = (rest % 0x80) + 0x80
      rest = Math.floor(rest / 0x80)
    }
    this.#bytes[this.#at++] = rest
  }

  /** A whole number, by how far it is from the one that is expected. */
  from(expected: number, value: number): void {
    const step = value - near(expected)
    this.count(step < 0 ? -2 * step - 1 : 2 * step)
  }

  /** A name of a client, region or log, which has no character past ASCII. */
  name(name: string): void {
    this.count(name.length)
    this.#room(name.length * UTF8_MOST)
    this.#at += encoder.encodeInto(name, this.#bytes.subarray(this.#at)).written
  }

  bytes(bytes: Uint8Array): void {
    this.count(bytes.length)
    this.#room(bytes.length)
    this.#bytes.set(bytes, this.#at)
    this.#at += bytes.length
  }

  /** What was written; the next frame begins. */
  take(): Uint8Array {
    const taken = this.#bytes.slice(0, this.#at)
    this.#at = 0
    if (this.#bytes.length > KEPT_BYTES) this.#bytes = new Uint8Array(START_BYTES)
    return taken
  }
}

/** A member that is not among them, of a newer kind of message, has no place in the compact form. */
const MEMBERS: ReadonlySet<string> = new Set(
  'kind log n client epoch cseq seen after replyTo body acceptedAtMs writtenAtMs'.split(' '),
)

/** The same for all connections. */
interface Shared {
  readonly body: Uint8Array
  readonly isPlain: boolean
}

const shared = new WeakMap<Delivered, Shared>()

function sharedOf(entry: Delivered): Shared {
  let known = shared.get(entry)
  if (known === undefined) {
    const isPlain = Object.keys(entry).every((member) => MEMBERS.has(member)) && hasNearNumbers(entry)
    known = { isPlain, body: encoder.encode(entry.kind === 'copy' ? '' : JSON.stringify(entry.body)) }
    shared.set(entry, known)
  }
  return known
}

/** Some of its numbers are for its author to choose, and must not make it unreadable for others. */
function hasNearNumbers(entry: Delivered): boolean {
  const { n, epoch, cseq, seen } = entry
  const numbers = [n, epoch, cseq, ...Object.values(seen)]
  if (entry.kind === 'message') {
    const { after, replyTo, acceptedAtMs, writtenAtMs } = entry
    numbers.push(after?.n ?? 0, replyTo?.epoch ?? 0, replyTo?.cseq ?? 0, acceptedAtMs, writtenAtMs ?? 0)
  }
  return numbers.every((each) => near(each) === each)
}

/** False for what has no compact form: nothing was written then, nor noted. */
export function writeCompact(numbers: WrittenNumbers, frame: ServerFrame, channel: number, to: ByteWriter): boolean {
  switch (frame.kind) {
    case 'deliver':
      return writeDeliver(numbers, frame, channel, to)
    case 'order':
      return writeOrder(numbers, frame, channel, to)
    default:
      return false
  }
}

function writeDeliver(numbers: WrittenNumbers, frame: DeliverFrame, channel: number, to: ByteWriter): boolean {
  const { generation, after, entries } = frame
  // Before the first resume is answered there is no generation.
  if (generation < 1 || generation !== numbers.generation || after !== numbers.sent) return false
  const names = new Set<string>()
  for (const entry of entries) {
    if (!sharedOf(entry).isPlain) return false
    collectNames(numbers, entry, names)
  }
  if (numbers.logs.length + names.size > sessionLimits.logs) return false
  to.count((names.size > 0 ? compactKinds.deliverWithNames : compactKinds.deliver) + CHANNEL_STEP * channel)
  if (names.size > 0) to.count(names.size)
  for (const log of names) {
    to.name(log)
    numbers.logs.push(log)
  }
  for (const entry of entries) writeEntry(numbers, entry, to)
  numbers.sent += entries.length
  return true
}

function collectNames({ logs }: SessionNumbers, entry: Delivered, names: Set<string>): void {
  if (!logs.includes(entry.log)) names.add(entry.log)
  for (const log in entry.seen) if (!logs.includes(log)) names.add(log)
  if (entry.kind === 'message' && entry.after !== null && !logs.includes(entry.after.log)) names.add(entry.after.log)
}

function writeOrder(numbers: WrittenNumbers, frame: OrderFrame, channel: number, to: ByteWriter): boolean {
  const { generation, after, from, identities } = frame
  const isNear = identities.every(({ epoch, cseq }) => near(epoch) + near(cseq) === epoch + cseq)
  if (generation !== numbers.generation || near(from) !== from || near(after) !== after || !isNear) return false
  const follows = after === numbers.ordered && from === after + 1
  to.count((follows ? compactKinds.order : compactKinds.orderFrom) + CHANNEL_STEP * channel)
  if (!follows) {
    to.from(numbers.ordered, after)
    to.from(after + 1, from)
  }
  for (const identity of identities) {
    const sender = writeSender(numbers, identity, to)
    to.from(sender.ordered + 1, identity.cseq)
    sender.ordered = identity.cseq
  }
  numbers.ordered = from + identities.length - 1
  return true
}

function writeEntry(numbers: WrittenNumbers, entry: Delivered, to: ByteWriter): void {
  const { logs, have } = numbers
  const at = to.later()
  to.count(logs.indexOf(entry.log))
  const sender = writeSender(numbers, entry, to)
  let said = 0
  const [n, cseq] = [countOf(have, entry.log) + 1, sender.cseq + 1]
  if (entry.n !== n || entry.cseq !== cseq) {
    said |= flags.numbers
    to.from(n, entry.n)
    to.from(cseq, entry.cseq)
  }
  if (!isKnown(numbers, entry.seen)) {
    said |= flags.seen
    writePosition(numbers, entry.seen, to)
  }
  said |= entry.kind === 'copy' ? flags.copy : writeMessage(numbers, entry, sender, to)
  to.set(at, said)
  noteEntry(numbers, sender, entry)
}

function writeMessage(
  numbers: WrittenNumbers,
  entry: Extract<Delivered, { kind: 'message' }>,
  sender: KnownSender,
  to: ByteWriter,
): number {
  const { after, replyTo, acceptedAtMs, writtenAtMs } = entry
  let said = 0
  if (after?.log !== sender.place?.log || after?.n !== sender.place?.n) {
    said |= flags.after
    writePlace(numbers, after, to)
  }
  if (replyTo !== null) {
    said |= flags.reply
    const target = writeSender(numbers, replyTo, to)
    to.from(target.cseq, replyTo.cseq)
  }
  to.from(numbers.acceptedAtMs, acceptedAtMs)
  numbers.acceptedAtMs = acceptedAtMs
  if (writtenAtMs !== undefined) {
    said |= flags.written
    to.from(acceptedAtMs, writtenAtMs)
  }
  to.bytes(sharedOf(entry).body)
  return said
}

/** Which logs are elsewhere, and how far from what has come. */
function writePosition({ logs, have }: SessionNumbers, position: Position, to: ByteWriter): void {
  let at = 0
  let bits = 0
  for (const [number, log] of logs.entries()) {
    const bit = number % LOGS_PER_BYTE
    if (bit === 0) {
      at = to.later()
      bits = 0
    }
    const [known, count] = [countOf(have, log), countOf(position, log)]
    if (count === known) continue
    bits |= 1 << bit
    to.set(at, bits)
    to.from(known, count)
  }
}

function writePlace({ logs, have }: SessionNumbers, place: LogPlace | null, to: ByteWriter): void {
  to.count(place === null ? 0 : logs.indexOf(place.log) + 1)
  if (place !== null) to.from(countOf(have, place.log), place.n)
}

function writeSender(numbers: WrittenNumbers, { client, epoch }: MessageIdentity, to: ByteWriter): KnownSender {
  const { senders, senderNumbers } = numbers
  const number = senderNumbers.get(`${client}/${epoch}`)
  to.count(number === undefined ? 0 : number + 1)
  if (number !== undefined) return senders[number] as KnownSender
  to.name(client)
  to.from(1, epoch)
  const free = freeNumber(numbers, client)
  const before = senders[free]
  if (before !== undefined) senderNumbers.delete(`${before.client}/${before.epoch}`)
  senderNumbers.set(`${client}/${epoch}`, free)
  return addSender(numbers, client, epoch)
}

/** An author who had seen just what has come takes no bytes. */
function isKnown({ logs, have }: SessionNumbers, seen: Position): boolean {
  return logs.every((log) => countOf(seen, log) === countOf(have, log))
}
