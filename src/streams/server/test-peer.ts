import assert from 'node:assert/strict'
import { until } from '../../testing/until.ts'
import type { StreamBounds } from '../bounds.ts'
import { createStreamClient } from '../client/client.ts'
import type { StreamClient, StreamClientOptions } from '../client/options.ts'
import type { ClientTransport } from '../client/ports.ts'
import { createMemoryRoomLog } from '../log/memory-log.ts'
import type { RoomLog, Session, SessionLink } from '../ports.ts'
import type { FrameFormat } from '../protocol/codec.ts'
import { decodeServerFrame } from '../protocol/decode.ts'
import type { ClientFrame, Entry, ServerFrame } from '../protocol/protocol.ts'
import type { ConnectOptions, StreamRegion, StreamRegionOptions } from './region.ts'
import { createStreamRegion } from './region.ts'

/** A raw client connection for tests. */
export interface RawPeer {
  /** Of all its channels. */
  readonly frames: readonly ServerFrame[]
  readonly channels: readonly number[]
  /** The connection, or its first session. */
  readonly closed: { readonly code: number; readonly reason: string } | null
  readonly session: Session
  /** What the network does not take. */
  bufferedBytes: number
  /** Of its first session; another one has its channel in the frame. */
  say(frame: ClientFrame & { readonly channel?: number }): void
  sayRaw(text: string): void
  /** The next frame of a kind that was not asked for before. */
  next<K extends ServerFrame['kind']>(kind: K): Promise<Extract<ServerFrame, { kind: K }>>
}

export function connectRaw(region: StreamRegion, options: ConnectOptions = {}): RawPeer {
  const frames: ServerFrame[] = []
  const channels: number[] = []
  const asked = new Map<string, number>()
  let closed: RawPeer['closed'] = null
  let bufferedBytes = 0
  const link: SessionLink = {
    send(data) {
      const text = String(data)
      const decoded = decodeServerFrame(text)
      assert.ok(decoded.kind === 'frame', text)
      frames.push(decoded.frame)
      channels.push(decoded.channel)
      if (decoded.frame.kind === 'ended' && decoded.channel === 0) closed ??= decoded.frame
    },
    close(code, reason) {
      closed ??= { code, reason }
    },
    get bufferedBytes() {
      return bufferedBytes
    },
  }
  const session = region.connect(link, options)
  return {
    frames,
    channels,
    session,
    get closed() {
      return closed
    },
    get bufferedBytes() {
      return bufferedBytes
    },
    set bufferedBytes(bytes) {
      bufferedBytes = bytes
    },
    say: (frame) => session.received(JSON.stringify(frame)),
    sayRaw: (text) => session.received(text),
    next(kind) {
      const skip = asked.get(kind) ?? 0
      asked.set(kind, skip + 1)
      type Frame = Extract<ServerFrame, { kind: typeof kind }>
      return until(`${kind} ${skip + 1}`, () => frames.filter((frame): frame is Frame => frame.kind === kind)[skip])
    },
  }
}

export function openRegion(
  options: Partial<Omit<StreamRegionOptions, 'bounds'>> & { readonly bounds?: Partial<StreamBounds> } = {},
): { readonly region: StreamRegion; readonly log: RoomLog } {
  const log = options.log ?? createMemoryRoomLog({ region: 'eu', nowMs: () => performance.now() })
  return { log, region: createStreamRegion({ region: 'eu', ...options, log }) }
}

export function hello(client: string, generation = 1, instance = 'i', epoch = 1): ClientFrame {
  return { kind: 'hello', version: 1, room: 'room', client, epoch, generation, instance }
}

export const fromStart: ClientFrame = {
  kind: 'resume',
  position: {},
  ordered: 0,
  pendingFrom: 1,
  acknowledged: null,
  previousRegion: null,
}

export function send(cseq: number, body: unknown): ClientFrame {
  return { kind: 'send', cseq, seen: {}, replyTo: null, body }
}

/** A client that has said hello, and follows from the start. */
export async function enter(region: StreamRegion, client: string, generation = 1): Promise<RawPeer> {
  const peer = connectRaw(region)
  peer.say(hello(client, generation))
  peer.say(fromStart)
  await peer.next('resumed')
  return peer
}

/** Connections inside of one process: frames arrive a moment later, in order. */
export function wired(
  regionOf: (name: string) => StreamRegion,
  format: FrameFormat = 'json',
): ClientTransport & { readonly opened: number; cut(): void } {
  let opened = 0
  const cuts = new Set<() => void>()
  return {
    connect(name, events) {
      opened += 1
      let open = true
      let session: Session | null = null
      const close = (code: number | null, reason: string) => {
        if (!open) return
        open = false
        session?.closed()
        setImmediate(() => events.closed(code, reason))
      }
      cuts.add(() => close(null, 'cut'))
      setImmediate(() => {
        session = regionOf(name).connect({
          format,
          send: (text) => void setImmediate(() => open && events.received(text)),
          close,
          bufferedBytes: 0,
        })
        events.opened(format)
      })
      return {
        send: (text) => void setImmediate(() => open && session?.received(text)),
        close: () => close(null, 'closed'),
      }
    },
    get opened() {
      return opened
    },
    cut() {
      for (const cut of cuts) cut()
    },
  }
}

export interface Followed {
  readonly client: StreamClient
  readonly transport: ReturnType<typeof wired>
  readonly seen: Entry[]
}

/** A client of a region, and the messages that it has received. */
export async function follow(region: StreamRegion, options: Partial<StreamClientOptions> = {}): Promise<Followed> {
  const seen: Entry[] = []
  const transport = wired(() => region)
  const client = await createStreamClient({
    room: 'room',
    regions: ['eu'],
    transport,
    mode: 'at-least-once',
    receiver: { message: (entry) => void seen.push(entry) },
    bounds: { reconnectBaseMs: 2, reconnectCapMs: 20 },
    ...options,
  })
  return { client, transport, seen }
}
