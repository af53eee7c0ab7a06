import { SECOND } from 'onceonly'
import { createRandom } from '../../../src/testing/random.ts'
import { onEveryPlace } from '../../support/place.ts'
import { killUnderLoad } from './load.ts'

onEveryPlace('workers killed at random under load: nothing twice, nothing acknowledged is lost', async (place) => {
  const random = createRandom(Date.now())
  const figures = await killUnderLoad(place, { workers: 3, kills: 18, boundMs: 20 * SECOND, random })
  console.log(`${place.address.kind}: ${JSON.stringify(figures)}`)
})
