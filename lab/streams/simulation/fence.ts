import type { SessionClaim, SessionLink } from '../../../src/streams/ports.ts'
import type { ClientFrame } from '../../../src/streams/protocol/protocol.ts'
import type { StreamJudge } from './judge.ts'
import type { RegionHome } from './network.ts'

/**
 * Watches who may write: a session that a newer one has fenced may not, and a client is resumed only when the region that
 * it comes from has fenced its older sessions, or did not answer in time.
 */
export interface FenceWatch {
  /** The region has this durably as the client's newest session. */
  entered(region: string, claim: SessionClaim): void
  wrote(region: string, client: string, generation: number): void
  /** The same connections, with a listener. */
  connect(region: string, connect: RegionHome['connect']): RegionHome['connect']
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
  const generationIn = (region: string, client: string) => generations.get(`${region} ${client}`) ?? 0

  function listen(region: string, link: SessionLink): { link: SessionLink; heard(frame: ClientFrame): void } {
    let who: { readonly client: string; readonly generation: number } | null = null
    let asked: { readonly previous: string; readonly atMs: number } | null = null
    let resumed = false
    function sent(text: string): void {
      if (resumed || who === null || !text.startsWith('{"kind":"resumed"')) return
      resumed = true
      // A client that has waited for so long got no answer.
      if (asked === null || asked.previous === region || nowMs() - asked.atMs >= fenceMs) return
      const { client, generation } = who
      if (generationIn(asked.previous, client) >= generation) options.fenced()
      else
        judge.fail('fence', `${client} was resumed in ${region} before ${asked.previous} had fenced its last session`)
    }
    return {
      link: {
        close: (code, reason) => link.close(code, reason),
        send(text) {
          sent(text)
          link.send(text)
        },
        get bufferedBytes() {
          return link.bufferedBytes
        },
      },
      heard(frame) {
        if (frame.kind === 'hello') who ??= frame
        if (frame.kind === 'resume' && frame.previousRegion !== null) {
          asked ??= { previous: frame.previousRegion, atMs: nowMs() }
        }
      },
    }
  }

  return {
    entered: (region, { client, generation }) => void generations.set(`${region} ${client}`, generation),
    wrote(region, client, generation) {
      if (generation < generationIn(region, client)) judge.fail('fence', `${client} wrote to ${region} after its fence`)
    },
    connect: (region, connect) => (given) => {
      const { link, heard } = listen(region, given)
      const session = connect(link)
      return {
        received(text) {
          heard(JSON.parse(text) as ClientFrame)
          session.received(text)
        },
        drained: () => session.drained(),
        closed: () => session.closed(),
      }
    },
  }
}
