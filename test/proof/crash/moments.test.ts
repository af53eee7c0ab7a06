import { createRandom } from '../../../src/testing/random.ts'
import { onEveryPlace } from '../../support/place.ts'
import { killAtMoments } from './moments.ts'

const ROUNDS = 18

onEveryPlace(
  'a process killed in the middle of a claim, a settle or a commit leaves all of it or nothing',
  async (place) => {
    // The moments are random, and chance is not repeatable with real processes; the names of the keys show what was tried.
    const found = await killAtMoments(place, { rounds: ROUNDS, atOnce: 3, random: createRandom(Date.now()) })
    console.log(`${place.address.kind}: ${JSON.stringify(found)}`)
  },
)
