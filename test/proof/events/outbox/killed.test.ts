import assert from 'node:assert/strict'
import type { Child } from '../../../support/crew.ts'
import { onEveryPlace } from '../../../support/place.ts'
import { runStorm } from './storm.ts'

const LEASE_MS = 1_500

onEveryPlace(
  'relays that are killed in the middle of a batch lose nothing, and their partitions go to the others',
  async (place) => {
    const rows = 2_000
    let killed = 0
    const bothKilled = Promise.withResolvers<void>()
    const figures = await runStorm(place, {
      rows,
      broker: { kind: 'local' },
      leaseMs: LEASE_MS,
      harmed: bothKilled.promise,
      async harm(relays, arrived) {
        // Two of three, each with a batch under way.
        if (killed < 2 && arrived > ((killed + 1) * rows) / 4) {
          await duringBatch(relays[killed])
          relays[killed]?.signal('SIGKILL')
          killed += 1
          if (killed === 2) bothKilled.resolve()
        }
      },
    })
    assert.equal(killed, 2)
    assert.equal(figures.rows, rows * 0.9)
  },
)

onEveryPlace(
  'a relay that is paused past its lease sends at most duplicates, and nothing is out of order',
  async (place) => {
    const rows = 1_500
    let paused: Child | null = null
    let wokeAtMs: number | null = null
    await runStorm(place, {
      rows,
      broker: { kind: 'local' },
      leaseMs: LEASE_MS,
      async harm(relays, arrived) {
        const [relay] = relays
        if (paused === null && arrived > rows / 4 && relay !== undefined) {
          await duringBatch(relay)
          relay.signal('SIGSTOP')
          paused = relay
          wokeAtMs = performance.now() + 3 * LEASE_MS
        } else if (paused !== null && wokeAtMs !== null && performance.now() > wokeAtMs) {
          paused.signal('SIGCONT')
          wokeAtMs = null
        }
      },
    })
    assert.ok(paused !== null)
  },
)

/** Until it begins to publish its next batch; one that has nothing to do is taken as it is. */
async function duringBatch(relay: Child | undefined): Promise<void> {
  if (relay === undefined) return
  relay.heardSoFar('publishing')
  await Promise.race([relay.heard('publishing'), new Promise((resolve) => void setTimeout(resolve, 1_000))])
}
