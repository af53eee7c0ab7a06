import { readCompact } from './compact-read.ts'
import { ByteWriter, createWrittenNumbers, type WrittenNumbers, writeCompact } from './compact-write.ts'
import type { Decoded } from './decode.ts'
import { decodeClientFrame, decodeServerFrame } from './decode.ts'
import { createNumbers, noteFrame, type SessionNumbers } from './numbers.ts'
import type { ClientFrame, Delivered, ServerFrame } from './protocol.ts'

/** What travels as one WebSocket message: text, or bytes. */
export type FrameData = string | Uint8Array

/** How the frames of a connection are written; both ends agree on it when the connection is opened. */
export type FrameFormat = 'json' | 'binary'

/** `late`: of a session that is over; it was on its way, and cannot be read any more. */
export type FrameRead<F> = Decoded<F> | { readonly kind: 'late' }

/**
 * One end of one connection: writes what this end says, and reads what the other one says. What it writes must arrive in
 * this order: names and numbers of earlier frames are not said again.
 */
export interface FrameCodec<Says, Hears> {
  write(channel: number, frame: Says): FrameData
  read(data: FrameData): FrameRead<Hears>
}

/** What a client says is JSON in either format. */
export function createClientCodec(format: FrameFormat): FrameCodec<ClientFrame, ServerFrame> {
  const sessions = new Map<number, SessionNumbers>()
  return {
    write(channel, frame) {
      if (format === 'binary' && frame.kind === 'hello') sessions.set(channel, createNumbers())
      if (frame.kind === 'leave') sessions.delete(channel)
      return jsonText(channel, frame)
    },
    read(data) {
      if (typeof data !== 'string') return readBytes(data, sessions)
      const read = decodeServerFrame(data)
      if (read.kind === 'frame') noteIn(sessions, read.channel, read.frame)
      return read
    },
  }
}

export function createServerCodec(format: FrameFormat): FrameCodec<ServerFrame, ClientFrame> {
  const sessions = new Map<number, WrittenNumbers>()
  const writer = new ByteWriter()
  return {
    write(channel, frame) {
      const session = sessions.get(channel)
      if (session !== undefined && writeCompact(session, frame, channel, writer)) return writer.take()
      noteIn(sessions, channel, frame)
      return serverText(channel, frame)
    },
    read(data) {
      if (typeof data !== 'string') return { kind: 'bad', tooLarge: false, reason: 'what a client says is text' }
      const read = decodeClientFrame(data)
      if (read.kind !== 'frame') return read
      const { channel, frame } = read
      if (format === 'binary' && frame.kind === 'hello') sessions.set(channel, createWrittenNumbers())
      if (frame.kind === 'leave') sessions.delete(channel)
      return read
    },
  }
}

function noteIn<N extends SessionNumbers>(sessions: Map<number, N>, channel: number, frame: ServerFrame): void {
  if (frame.kind === 'ended') sessions.delete(channel)
  const session = sessions.get(channel)
  if (session !== undefined) noteFrame(session, frame)
}

function readBytes(data: Uint8Array, sessions: ReadonlyMap<number, SessionNumbers>): FrameRead<ServerFrame> {
  try {
    const read = readCompact(data, sessions)
    return read === null ? { kind: 'late' } : { kind: 'frame', ...read }
  } catch {
    return { kind: 'bad', tooLarge: false, reason: 'no frame' }
  }
}

/** The kind comes first, for people who read along; the channel of the first session is left out. */
function jsonText(channel: number, frame: ClientFrame | ServerFrame): string {
  if (channel === 0) return JSON.stringify(frame)
  const { kind, ...members } = frame
  return JSON.stringify({ kind, channel, ...members })
}

function serverText(channel: number, frame: ServerFrame): string {
  if (frame.kind !== 'deliver') return jsonText(channel, frame)
  const { generation, after, entries } = frame
  const to = channel === 0 ? '' : `"channel":${channel},`
  return `{"kind":"deliver",${to}"generation":${generation},"after":${after},"entries":[${entries.map(deliveredText).join(',')}]}`
}

const texts = new WeakMap<Delivered, string>()

/** The same text for all who are sent the entry, made once. */
export function deliveredText(entry: Delivered): string {
  let text = texts.get(entry)
  if (text === undefined) texts.set(entry, (text = JSON.stringify(entry)))
  return text
}
