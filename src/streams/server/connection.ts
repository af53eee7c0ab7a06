import type { Runtime } from '../../runtime/runtime.ts'
import type { StreamBounds } from '../bounds.ts'
import type { Session, SessionLink } from '../ports.ts'
import { createServerCodec, type FrameData } from '../protocol/codec.ts'
import type { Decoded } from '../protocol/decode.ts'
import type { ClientFrame, CloseReason, ServerFrame } from '../protocol/protocol.ts'
import { closeCodes } from '../protocol/protocol.ts'
import type { OpenSession } from './session-host.ts'
import { watchSilence } from './silence.ts'

/** The part of a connection that one session has. */
export interface ChannelLink {
  /** How many bytes that are; none once the connection has ended. */
  send(frame: ServerFrame): number
  /** Ends the session, or the whole connection, as the reason demands. */
  end(why: CloseReason, reason: string): void
  /** So many bytes more, or less, wait in this session. */
  held(bytes: number): void
  /** Of the whole connection: its sessions share one line. */
  readonly bufferedBytes: number
}

/** One client's connection, with the sessions on it. */
export interface ServerConnection extends Session {
  end(why: CloseReason, reason: string): void
}

export interface ServerConnectionOptions {
  readonly link: SessionLink
  readonly runtime: Runtime
  readonly bounds: StreamBounds
  begin(link: ChannelLink): OpenSession
  ended(connection: ServerConnection): void
}

/** What a client does that means harm, or does not speak our language, ends all that it has. */
const forAll: ReadonlySet<CloseReason> = new Set(['badFrame', 'tooLarge', 'flooded', 'silent'])

export function createServerConnection(options: ServerConnectionOptions): ServerConnection {
  const { link, runtime, bounds } = options
  const codec = createServerCodec(link.format ?? 'json')
  /** In the order of their turns. */
  const sessions = new Map<number, OpenSession>()
  /** The channel of the next hello: lower ones without a session are over, and what comes for them was on its way. */
  let next = 0
  let heldBytes = 0
  let over = false

  function closed(): void {
    if (over) return
    over = true
    silence.stop()
    for (const session of sessions.values()) session.closed()
    sessions.clear()
    options.ended(self)
  }

  function end(why: CloseReason, reason: string): void {
    if (over) return
    link.close(closeCodes[why], reason)
    closed()
  }

  function openChannel(channel: number): OpenSession {
    let mine = 0
    const session = options.begin({
      get bufferedBytes() {
        return link.bufferedBytes
      },
      send(frame) {
        if (over) return 0
        const data = codec.write(channel, frame)
        link.send(data)
        return data.length
      },
      end(why, reason) {
        if (forAll.has(why)) return end(why, reason)
        if (over || !sessions.delete(channel)) return
        heldBytes -= mine
        link.send(codec.write(channel, { kind: 'ended', code: closeCodes[why], reason }))
      },
      held(bytes) {
        if (!sessions.has(channel)) return
        mine += bytes
        heldBytes += bytes
      },
    })
    sessions.set(channel, session)
    return session
  }

  function enter(channel: number, frame: ClientFrame, bytes: number): void {
    if (frame.kind !== 'hello') return end('badFrame', 'the first frame is a hello')
    if (channel !== next) return end('badFrame', `the next channel is ${next}`)
    next += 1
    if (sessions.size < bounds.connectionRooms) return openChannel(channel).received(frame, bytes)
    const reason = `a connection has at most ${bounds.connectionRooms} rooms`
    link.send(codec.write(channel, { kind: 'ended', code: closeCodes.notAllowed, reason }))
  }

  function take({ channel, frame }: Extract<Decoded<ClientFrame>, { kind: 'frame' }>, bytes: number): void {
    if (frame.kind === 'ping' && next > 0) {
      // One that reads nothing gets no answers, which would pile up.
      if (link.bufferedBytes < bounds.linkBytes) link.send(codec.write(0, { kind: 'pong' }))
      return
    }
    const session = sessions.get(channel)
    if (session === undefined) {
      if (channel >= next || frame.kind === 'hello') enter(channel, frame, bytes)
      return
    }
    if (frame.kind === 'leave') {
      session.closed()
      sessions.delete(channel)
    } else session.received(frame, bytes)
  }

  const self: ServerConnection = {
    received(data: FrameData) {
      if (over) return
      // A connection without a session stays open for a moment only, however much it says.
      if (sessions.size > 0) silence.heard()
      const decoded = codec.read(data)
      if (decoded.kind === 'bad') return end(decoded.tooLarge ? 'tooLarge' : 'badFrame', decoded.reason)
      if (decoded.kind === 'late') return
      if (heldBytes > bounds.connectionBytes) return end('flooded', `${heldBytes} bytes wait already`)
      take(decoded, data.length)
    },
    drained() {
      const turns = [...sessions]
      for (const [, session] of turns) session.drained()
      // The first may have filled the line again: another one is first the next time.
      const [[first, session] = [0, null]] = turns
      if (session !== null && sessions.delete(first)) sessions.set(first, session)
    },
    closed,
    end,
  }
  const silence = watchSilence(
    runtime,
    () => (sessions.size === 0 ? bounds.helloMs : bounds.silenceMs),
    (ms) => end('silent', `nothing was heard for ${ms} ms`),
  )
  return self
}
