import assert from 'node:assert/strict'
import { SECOND } from 'onceonly'
import { createRandom } from '../../../src/testing/random.ts'
import { onEveryPlace } from '../../support/place.ts'
import { killUnderLoad } from './load.ts'

onEveryPlace('workers killed at random under load: nothing twice, nothing acknowledged is lost', async (place) => {
  const random = createRandom(Date.now())
  const figures = await killUnderLoad(place, { workers: 3, kills: 18, boundMs: 20 * SECOND, random })
  console.log(`${place.address.kind}: ${JSON.stringify(figures)}`)
  // A load that did not load, or killers that did not kill, would prove nothing.
  assert.ok(figures.kills >= 6, `${figures.kills} kills`)
  assert.ok(figures.acknowledged >= 50, `${figures.acknowledged} acknowledged`)
})
