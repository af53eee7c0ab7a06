import assert from 'node:assert/strict'
import { createRandom } from '../../../src/testing/random.ts'
import { onEveryPlace } from '../../support/place.ts'
import { killWorkers } from './kills.ts'

onEveryPlace('workers killed in the middle of runs: every run ends, and no step acts twice', async (place) => {
  const random = createRandom(Date.now())
  const figures = await killWorkers(place, { runs: 40, workers: 3, kills: 6, random })
  console.log(`${place.address.kind}: ${JSON.stringify(figures)}`)
  // Killers that did not kill would prove nothing.
  assert.ok(figures.kills >= 4, `${figures.kills} kills`)
})
