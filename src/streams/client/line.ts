import type { Timer } from '../../runtime/runtime.ts'
import { createClientCodec, type FrameCodec } from '../protocol/codec.ts'
import type { ClientFrame, ServerFrame } from '../protocol/protocol.ts'
import type { SessionBounds } from '../session-limits.ts'
import type { ClientLink, ClientTransport } from './ports.ts'
import type { ClientRuntime } from './runtime.ts'

/** A session's part of a connection. */
export interface Channel {
  send(frame: ClientFrame): void
  /** Ends the session. The connection is closed with its last one. */
  close(): void
}

export interface ChannelEvents {
  /** The connection is open: the first frame is a hello. */
  opened(): void
  received(frame: ServerFrame, bytes: number): void
  closed(code: number | null, reason: string): void
}

/** The connections of one client program, one to each region that any of its rooms is in. */
export interface Lines {
  /** On the connection to this region that is there, or on a new one. Reports nothing before it has returned. */
  open(region: string, events: ChannelEvents): Channel
}

interface LineOptions {
  readonly transport: ClientTransport
  readonly runtime: ClientRuntime
  readonly bounds: SessionBounds
}

/** One connection. */
interface Line {
  open(events: ChannelEvents): Channel
}

export function createLines(options: LineOptions): Lines {
  const lines = new Map<string, Line>()
  return {
    open(region, events) {
      let line = lines.get(region)
      if (line === undefined) {
        const opened = createLine(options, region, () => {
          if (lines.get(region) === opened) lines.delete(region)
        })
        lines.set(region, (line = opened))
      }
      return line.open(events)
    },
  }
}

function createLine({ transport, runtime, bounds }: LineOptions, region: string, over: () => void): Line {
  /** All that are not closed, also before they have a number. */
  const channels = new Set<ChannelEvents>()
  const numbers = new Map<number, ChannelEvents>()
  let codec: FrameCodec<ClientFrame, ServerFrame> | null = null
  let next = 0
  let ended = false
  let heardAtMs = runtime.monotonicMs()
  let timer: Timer | null = null

  function end(code: number | null, reason: string): void {
    if (ended) return
    ended = true
    timer?.cancel()
    over()
    const left = [...channels]
    channels.clear()
    for (const events of left) events.closed(code, reason)
  }

  function broken(reason: string): void {
    link.close()
    end(null, reason)
  }

  function watch(): void {
    timer = runtime.setTimer(
      bounds.silenceMs / 3,
      () => {
        if (ended) return
        if (runtime.monotonicMs() - heardAtMs > bounds.silenceMs) return broken('the region was not heard any more')
        if (next > 0) say(0, { kind: 'ping' })
        watch()
      },
      true,
    )
  }

  function say(number: number, frame: ClientFrame): void {
    if (codec !== null && !ended) link.send(codec.write(number, frame))
  }

  const link: ClientLink = transport.connect(region, {
    opened(format = 'json') {
      if (ended) return
      codec = createClientCodec(format)
      // Those that are added meanwhile find the connection open.
      const waiting = [...channels]
      for (const events of waiting) if (channels.has(events)) events.opened()
    },
    received(data) {
      if (ended || codec === null) return
      heardAtMs = runtime.monotonicMs()
      const decoded = codec.read(data)
      if (decoded.kind === 'bad') return broken(`the region sent what is no frame: ${decoded.reason}`)
      if (decoded.kind === 'late') return
      const { channel, frame } = decoded
      // What comes for a session that is over was on its way.
      const events = numbers.get(channel)
      if (events === undefined || frame.kind === 'pong') return
      if (frame.kind === 'ended') {
        forget(events, channel)
        events.closed(frame.code, frame.reason)
      } else events.received(frame, data.length)
    },
    closed: end,
  })
  watch()

  function forget(events: ChannelEvents, number: number | null): void {
    channels.delete(events)
    if (number !== null) numbers.delete(number)
    if (channels.size > 0 || ended) return
    ended = true
    timer?.cancel()
    over()
    link.close()
  }

  return {
    open(events) {
      /** With its first frame: the numbers of a connection have no gaps. */
      let mine: number | null = null
      channels.add(events)
      if (codec !== null) queueMicrotask(() => channels.has(events) && events.opened())
      return {
        send(frame) {
          if (codec === null || !channels.has(events)) return
          if (mine === null) numbers.set((mine = next++), events)
          say(mine, frame)
        },
        close() {
          if (!channels.has(events)) return
          if (mine !== null && channels.size > 1) say(mine, { kind: 'leave' })
          forget(events, mine)
        },
      }
    },
  }
}
