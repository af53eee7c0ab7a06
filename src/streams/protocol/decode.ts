import { sessionLimits } from '../session-limits.ts'
import type { Fields } from './fields.ts'
import {
  count,
  FrameProblem,
  fields,
  json,
  list,
  name,
  orNull,
  position,
  readContent,
  readIdentity,
  readPlace,
  text,
} from './fields.ts'
import type { AckResult, ClientFrame, Delivered, Entry, SendFrame, ServerFrame } from './protocol.ts'

/** A frame, or why it is none: the reason goes into the close frame, so it is short and repeats nothing. */
export type Decoded<F> =
  | { readonly kind: 'frame'; readonly frame: F; readonly channel: number }
  | { readonly kind: 'bad'; readonly tooLarge: boolean; readonly reason: string }

/**
 * Reads a client's frame. Members that we do not know are left out: a newer client may have them. The channel stands in
 * the frame; the first one, 0, may be left out.
 */
export function decodeClientFrame(text: string): Decoded<ClientFrame> {
  return decode(text, sessionLimits.clientFrameBytes, readClientFrame)
}

/** What a client checks before it keeps a message: of the frames that it sends, the one whose parts are not its own. */
export function decodeSendFrame(text: string): Decoded<SendFrame> {
  return decode(text, sessionLimits.clientFrameBytes, readSend)
}

/**
 * Reads a server's frame. Members that we do not know are left out: a newer server may have them.
 *
 * @example
 * ```ts
 * import { decodeServerFrame } from 'onceonly/stream/protocol'
 *
 * const decoded = decodeServerFrame('{"kind":"pong"}')
 * if (decoded.kind === 'bad') console.log(decoded.reason)
 * ```
 */
export function decodeServerFrame(text: string): Decoded<ServerFrame> {
  return decode(text, sessionLimits.serverFrameBytes, readServerFrame)
}

function decode<F>(text: string, mostBytes: number, read: (from: Fields) => F): Decoded<F> {
  // A character is a byte at least: what is too long in characters is too long in bytes, and is not even parsed.
  if (text.length > mostBytes) {
    return { kind: 'bad', tooLarge: true, reason: `a frame has at most ${mostBytes} bytes` }
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { kind: 'bad', tooLarge: false, reason: 'the frame is not JSON' }
  }
  try {
    const from = fields(value, 'frame')
    const channel = from['channel'] === undefined ? 0 : count(from, 'channel', 0)
    return { kind: 'frame', frame: read(from), channel }
  } catch (error) {
    if (error instanceof FrameProblem) return { kind: 'bad', tooLarge: false, reason: error.message }
    throw error
  }
}

function readClientFrame(from: Fields): ClientFrame {
  const { kind } = from
  switch (kind) {
    case 'hello':
      return {
        kind,
        version: count(from, 'version', 1),
        room: name(from, 'room'),
        client: name(from, 'client'),
        epoch: count(from, 'epoch', 1),
        generation: count(from, 'generation', 1),
        instance: name(from, 'instance'),
      }
    case 'resume':
      return {
        kind,
        position: position(from, 'position'),
        ordered: count(from, 'ordered', 0),
        pendingFrom: count(from, 'pendingFrom', 1),
        acknowledged: orNull(from, 'acknowledged', readPlace),
        previousRegion: from['previousRegion'] === null ? null : name(from, 'previousRegion'),
      }
    case 'send':
      return readSend(from)
    case 'credit':
      return { kind, taken: count(from, 'taken', 0) }
    case 'leave':
    case 'ping':
      return { kind }
    default:
      throw new FrameProblem('the kind of the frame is not known')
  }
}

function readSend(from: Fields): SendFrame {
  return {
    kind: 'send',
    cseq: count(from, 'cseq', 1),
    ...readContent(from),
  }
}

function readServerFrame(from: Fields): ServerFrame {
  const { kind } = from
  switch (kind) {
    case 'welcome':
      return {
        kind,
        version: count(from, 'version', 1),
        region: name(from, 'region'),
        generation: count(from, 'generation', 1),
        position: position(from, 'position'),
        floor: count(from, 'floor', 1),
        last: orNull(from, 'last', readPlace),
      }
    case 'ack':
      return {
        kind,
        floor: count(from, 'floor', 1),
        ranges: list(from, 'ranges', sessionLimits.sendWindow).map(readRange),
        results: list(from, 'results', sessionLimits.sendWindow).map(readResult),
      }
    case 'nack': {
      const { why } = from
      if (why !== 'fork' && why !== 'target-unknown') throw new FrameProblem('`why` is not known')
      return { kind, cseq: count(from, 'cseq', 1), why }
    }
    case 'deliver':
      return {
        kind,
        generation: count(from, 'generation', 1),
        after: count(from, 'after', 0),
        entries: list(from, 'entries', sessionLimits.deliverEntries).map(readDelivered),
      }
    case 'order':
      return {
        kind,
        generation: count(from, 'generation', 1),
        after: count(from, 'after', 0),
        from: count(from, 'from', 1),
        identities: list(from, 'identities', sessionLimits.orderRows).map((each) =>
          readIdentity(fields(each, 'identities')),
        ),
      }
    case 'resumed':
      return { kind, ...readHead(from), sent: count(from, 'sent', 0) }
    case 'reset': {
      const { why } = from
      if (why !== 'expired' && why !== 'unknown') throw new FrameProblem('`why` is not known')
      return { kind, why, ...readHead(from), snapshot: json(from, 'snapshot') }
    }
    case 'lag':
      return { kind, missing: position(from, 'missing') }
    case 'ended':
      return { kind, code: count(from, 'code', 1), reason: text(from, 'reason') }
    case 'pong':
      return { kind }
    default:
      throw new FrameProblem('the kind of the frame is not known')
  }
}

function readHead(from: Fields) {
  return {
    generation: count(from, 'generation', 1),
    position: position(from, 'position'),
    ordered: count(from, 'ordered', 0),
    floor: count(from, 'floor', 1),
    last: orNull(from, 'last', readPlace),
  }
}

function readDelivered(value: unknown): Delivered {
  const from = fields(value, 'entries')
  const { kind } = from
  switch (kind) {
    case 'message':
      return readMessage(from)
    case 'copy':
      return { kind, ...readPlace(from), ...readIdentity(from), seen: position(from, 'seen') }
    default:
      throw new FrameProblem('the kind of an entry is not known')
  }
}

/** Almost one literal, because a client reads nothing else as often. */
function readMessage(from: Fields): Entry & { readonly kind: 'message' } {
  return {
    ...readContent(from),
    kind: 'message',
    log: name(from, 'log'),
    n: count(from, 'n', 1),
    client: name(from, 'client'),
    epoch: count(from, 'epoch', 1),
    cseq: count(from, 'cseq', 1),
    after: orNull(from, 'after', readPlace),
    acceptedAtMs: count(from, 'acceptedAtMs', 0),
  }
}

function readResult(value: unknown): AckResult {
  const from = fields(value, 'results')
  return { cseq: count(from, 'cseq', 1), place: orNull(from, 'place', readPlace) }
}

function readRange(value: unknown): readonly [number, number] {
  if (!Array.isArray(value) || value.length !== 2) throw new FrameProblem('`ranges` has something that is no range')
  const from = { first: value[0], last: value[1] }
  return [count(from, 'first', 1), count(from, 'last', 1)]
}
