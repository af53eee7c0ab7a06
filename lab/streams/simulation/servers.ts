import type { Position } from '../../../src/streams/protocol/protocol.ts'
import type { Simulation } from '../../../test/support/simulation.ts'
import type { StreamJudge } from './judge.ts'
import type { SimulatedRegion } from './region.ts'

/** Servers that publish, and publish again in any region for as long as they have no answer. */
export interface Servers {
  readonly pending: number
  say(): void
}

/** Soon enough that an earlier attempt is often still under way. */
const AGAIN_MS = 400

export function createServers(options: {
  readonly sim: Simulation
  readonly judge: StreamJudge
  nextUid(): number
  pick(): SimulatedRegion | undefined
  published(): void
}): Servers {
  const { sim, judge, nextUid, pick, published } = options
  let pending = 0

  function say(cause: { readonly uid: number; readonly seen: Position } | null): void {
    const uid = nextUid()
    judge.said({ uid, sender: `server ${uid}`, index: 1, causes: cause === null ? [] : [cause.uid] })
    pending += 1
    let done = false
    const attempt = () => {
      if (done) return
      sim.timer(sim.random.next() * 2 * AGAIN_MS, attempt)
      pick()
        ?.publish(uid, cause?.seen)
        .then(
          ({ place }) => {
            if (done) return
            done = true
            pending -= 1
            published()
            judge.acknowledged(uid)
            if (cause === null && place !== null) say({ uid, seen: { [place.log]: place.n } })
          },
          // The next attempt is under way.
          () => {},
        )
    }
    attempt()
  }

  return {
    get pending() {
      return pending
    },
    say: () => say(null),
  }
}
