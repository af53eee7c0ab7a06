import { countOf } from '../parts/count.ts'
import { sessionLimits } from '../session-limits.ts'
import { isStreamName } from './fields.ts'
import {
  addSender,
  CHANNEL_STEP,
  compactKinds,
  flags,
  type KnownSender,
  LOGS_PER_BYTE,
  near,
  noteEntry,
  type SessionNumbers,
} from './numbers.ts'
import type { Delivered, DeliverFrame, LogPlace, MessageIdentity, OrderFrame, Position } from './protocol.ts'

const decoder = new TextDecoder('utf-8', { fatal: true })

/** Reads one frame, and trusts nothing: what is no frame throws, with no word on what is wrong with it. */
class ByteReader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    if (bytes.length > sessionLimits.serverFrameBytes) throw odd()
    this.#bytes = bytes
  }

  get done(): boolean {
    return this.#at >= this.#bytes.length
  }

  byte(): number {
    const byte = this.#bytes[this.#at++]
    if (byte === undefined) throw odd()
    return byte
  }

  count(): number {
    let value = 0
    for (let scale = 1; ; scale *= 0x80) {
      const byte = this.byte()
      value = inRange(value + (byte % 0x80) * scale)
      if (byte < 0x80) return value
    }
  }

  /** The number that is this far from the one that is expected. */
  from(expected: number, least: number): number {
    const step = this.count()
    return inRange(near(expected) + (step % 2 === 0 ? step / 2 : -(step + 1) / 2), least)
  }

  text(): string {
    const bytes = this.count()
    const end = this.#at + bytes
    const text = this.#bytes.subarray(this.#at, end)
    this.#at = end
    if (text.length < bytes) throw odd()
    return decoder.decode(text)
  }

  name(): string {
    const name = this.text()
    if (!isStreamName(name)) throw odd()
    return name
  }
}

function odd(): Error {
  return new RangeError()
}

function inRange(value: number, least = 0): number {
  if (Number.isSafeInteger(value) && value >= least) return value
  throw odd()
}

/** Null for a session that is over: what was on its way cannot be read any more. */
export function readCompact(
  bytes: Uint8Array,
  sessions: ReadonlyMap<number, SessionNumbers>,
): { readonly channel: number; readonly frame: DeliverFrame | OrderFrame } | null {
  const from = new ByteReader(bytes)
  const head = from.count()
  const kind = head % CHANNEL_STEP
  const channel = (head - kind) / CHANNEL_STEP
  const numbers = sessions.get(channel)
  return numbers === undefined ? null : { channel, frame: readFrame(numbers, kind, from) }
}

function readFrame(numbers: SessionNumbers, kind: number, from: ByteReader): DeliverFrame | OrderFrame {
  if (kind === compactKinds.order || kind === compactKinds.orderFrom) return readOrder(numbers, kind, from)
  if (kind === compactKinds.deliverWithNames) readNames(numbers, from)
  return readDeliver(numbers, from)
}

function readDeliver(numbers: SessionNumbers, from: ByteReader): DeliverFrame {
  const { generation, sent: after } = numbers
  const entries: Delivered[] = []
  while (!from.done) {
    if (entries.length >= sessionLimits.deliverEntries) throw odd()
    entries.push(readEntry(numbers, from))
  }
  numbers.sent += entries.length
  return { kind: 'deliver', generation, after, entries }
}

function readOrder(numbers: SessionNumbers, kind: number, bytes: ByteReader): OrderFrame {
  const follows = kind === compactKinds.order
  const after = follows ? numbers.ordered : bytes.from(numbers.ordered, 0)
  const from = follows ? after + 1 : bytes.from(after + 1, 1)
  const identities: MessageIdentity[] = []
  while (!bytes.done) {
    if (identities.length >= sessionLimits.orderRows) throw odd()
    const sender = readSender(numbers, bytes)
    const { client, epoch } = sender
    sender.ordered = bytes.from(sender.ordered + 1, 1)
    identities.push({ client, epoch, cseq: sender.ordered })
  }
  numbers.ordered = from + identities.length - 1
  return { kind: 'order', generation: numbers.generation, after, from, identities }
}

function readEntry(numbers: SessionNumbers, from: ByteReader): Delivered {
  const said = from.byte()
  const log = logOf(numbers, from.count())
  const sender = readSender(numbers, from)
  const { client, epoch } = sender
  const saysNumbers = (said & flags.numbers) !== 0
  const next = countOf(numbers.have, log) + 1
  const n = saysNumbers ? from.from(next, 1) : inRange(next)
  const cseq = saysNumbers ? from.from(sender.cseq + 1, 1) : inRange(sender.cseq + 1)
  const seen = readPosition(numbers, said & flags.seen ? from : null)
  const entry: Delivered =
    said & flags.copy
      ? { kind: 'copy', log, n, client, epoch, cseq, seen }
      : { kind: 'message', log, n, client, epoch, cseq, seen, ...readMessage(numbers, said, sender, from) }
  noteEntry(numbers, sender, entry)
  return entry
}

function readMessage(numbers: SessionNumbers, said: number, sender: KnownSender, from: ByteReader) {
  const after = said & flags.after ? readPlace(numbers, from) : sender.place
  const replyTo = said & flags.reply ? readIdentity(numbers, from) : null
  const acceptedAtMs = from.from(numbers.acceptedAtMs, 0)
  numbers.acceptedAtMs = acceptedAtMs
  const written = said & flags.written ? { writtenAtMs: from.from(acceptedAtMs, 0) } : {}
  return { after, replyTo, acceptedAtMs, ...written, body: JSON.parse(from.text()) as unknown }
}

/** A position, by the logs that are not where they are expected; without them it is just what has come. */
function readPosition({ logs, have }: SessionNumbers, from: ByteReader | null): Position {
  const position: Record<string, number> = {}
  let bits = 0
  for (const [number, log] of logs.entries()) {
    const bit = number % LOGS_PER_BYTE
    if (bit === 0) bits = from?.byte() ?? 0
    const known = countOf(have, log)
    const count = bits & (1 << bit) ? (from?.from(known, 0) ?? 0) : known
    if (count > 0) position[log] = count
  }
  return position
}

function readPlace(numbers: SessionNumbers, from: ByteReader): LogPlace | null {
  const number = from.count()
  if (number === 0) return null
  const log = logOf(numbers, number - 1)
  return { log, n: from.from(countOf(numbers.have, log), 1) }
}

function readIdentity(numbers: SessionNumbers, from: ByteReader): MessageIdentity {
  const { client, epoch, cseq } = readSender(numbers, from)
  return { client, epoch, cseq: from.from(cseq, 1) }
}

function readSender(numbers: SessionNumbers, from: ByteReader): KnownSender {
  const number = from.count()
  if (number === 0) return addSender(numbers, from.name(), from.from(1, 1))
  const known = numbers.senders[number - 1]
  if (known === undefined) throw odd()
  return known
}

function readNames({ logs }: SessionNumbers, from: ByteReader): void {
  for (let left = from.count(); left > 0; left--) if (logs.push(from.name()) > sessionLimits.logs) throw odd()
}

function logOf({ logs }: SessionNumbers, number: number): string {
  const log = logs[number]
  if (log === undefined) throw odd()
  return log
}
