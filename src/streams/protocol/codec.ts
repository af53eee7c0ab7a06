import type { Decoded } from './decode.ts'
import { decodeClientFrame, decodeServerFrame } from './decode.ts'
import type { ClientFrame, Delivered, ServerFrame } from './protocol.ts'

/** What travels as one WebSocket message: text, or bytes. */
export type FrameData = string | Uint8Array<ArrayBuffer>

/** How the frames of a connection are written; both ends agree on it when the connection is opened. */
export type FrameFormat = 'json'

/** One end of one connection: writes what this end says, and reads what the other one says. */
export interface FrameCodec<Says, Hears> {
  write(channel: number, frame: Says): FrameData
  read(data: FrameData): Decoded<Hears>
}

export function createClientCodec(_format: FrameFormat): FrameCodec<ClientFrame, ServerFrame> {
  return { write: jsonText, read: (data) => (typeof data === 'string' ? decodeServerFrame(data) : notText) }
}

export function createServerCodec(_format: FrameFormat): FrameCodec<ServerFrame, ClientFrame> {
  return { write: serverText, read: (data) => (typeof data === 'string' ? decodeClientFrame(data) : notText) }
}

const notText = { kind: 'bad', tooLarge: false, reason: 'frames are text' } as const

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
