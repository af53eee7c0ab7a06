import assert from 'node:assert/strict'
import { createRandom } from '../../../src/testing/random.ts'
import { onEveryPlace } from '../../support/place.ts'
import { crowd } from './crowd.ts'

/** The lab (`npm run lab -- run-queues`) has ten thousand runs. */
onEveryPlace(
  'limits of a queue hold over processes of which one is killed, by the times in the journals',
  async (place) => {
    const figures = await crowd(place, {
      runs: 240,
      workers: 2,
      kills: 1,
      concurrency: 12,
      perKey: 2,
      rate: { limit: 40, perMs: 1_000 },
      random: createRandom(7),
    })
    console.log(`${place.address.kind}: ${JSON.stringify(figures)}`)
    // A limit that was never reached would not have been tried: all of them waited when the first was let in.
    assert.equal(figures.places, 12)
  },
)
