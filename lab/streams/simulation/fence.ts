import type { SessionClaim, SessionLink } from '../../../src/streams/ports.ts'
import { createClientCodec, createServerCodec, type FrameData } from '../../../src/streams/protocol/codec.ts'
import type { HelloFrame, ServerFrame } from '../../../src/streams/protocol/protocol.ts'
import type { StreamJudge } from './judge.ts'
import type { RegionHome } from './network.ts'

/**
 * Watches who may write: a session that a newer one has fenced may not, and a client is resumed only when the region that
 * it comes from has fenced its older sessions, or did not answer in time.
 */
export interface FenceWatch {
  /** The region has this durably as the client's newest session. */
  entered(region: string, room: string, claim: SessionClaim): void
  wrote(region: string, room: string, client: string, generation: number): void
  /** The same connections, with a listener. */
  connect(region: string, connect: RegionHome['connect']): RegionHome['connect']
}

/** What a session has said so far. */
interface Heard extends Pick<HelloFrame, 'room' | 'client' | 'generation'> {
  asked: { readonly previous: string; readonly atMs: number } | null
  resumed: boolean
}

export function createFenceWatch(options: {
  readonly judge: StreamJudge
  readonly fenceMs: number
  nowMs(): number
  /** A client was resumed after another region had fenced it. */
  fenced(): void
}): FenceWatch {
  const { judge, fenceMs, nowMs } = options
  const generations = new Map<string, number>()
  const generationIn = (region: string, room: string, client: string) =>
    generations.get(`${region} ${room} ${client}`) ?? 0

  /** Listens to all sessions of a connection. */
  function listen(region: string, link: SessionLink): { link: SessionLink; heard(data: FrameData): void } {
    const codecs = { client: createServerCodec('json'), server: createClientCodec('json') }
    const heard = new Map<number, Heard>()

    function sent(channel: number, frame: ServerFrame): void {
      const session = heard.get(channel)
      if (frame.kind !== 'resumed' || session === undefined || session.resumed) return
      session.resumed = true
      const { client, generation, room, asked } = session
      // A client that has waited for so long got no answer.
      if (asked === null || asked.previous === region || nowMs() - asked.atMs >= fenceMs) return
      if (generationIn(asked.previous, room, client) >= generation) options.fenced()
      else
        judge.fail('fence', `${client} was resumed in ${region} before ${asked.previous} had fenced its last session`)
    }

    return {
      link: {
        close: (code, reason) => link.close(code, reason),
        send(data) {
          const said = codecs.server.read(data)
          if (said.kind === 'frame') sent(said.channel, said.frame)
          link.send(data)
        },
        get bufferedBytes() {
          return link.bufferedBytes
        },
      },
      heard(data) {
        const said = codecs.client.read(data)
        if (said.kind === 'bad') return judge.fail('sound', `a frame of a client cannot be read: ${said.reason}`)
        if (said.kind === 'late') return
        const { channel, frame } = said
        if (frame.kind === 'hello') heard.set(channel, { ...frame, asked: null, resumed: false })
        const session = heard.get(channel)
        if (session !== undefined && frame.kind === 'resume' && frame.previousRegion !== null) {
          session.asked ??= { previous: frame.previousRegion, atMs: nowMs() }
        }
      },
    }
  }

  return {
    entered: (region, room, { client, generation }) => void generations.set(`${region} ${room} ${client}`, generation),
    wrote(region, room, client, generation) {
      if (generation < generationIn(region, room, client))
        judge.fail('fence', `${client} wrote to ${region} after its fence`)
    },
    connect: (region, connect) => (given) => {
      const { link, heard } = listen(region, given)
      const session = connect(link)
      return {
        received(data) {
          heard(data)
          session.received(data)
        },
        drained: () => session.drained(),
        closed: () => session.closed(),
      }
    },
  }
}
