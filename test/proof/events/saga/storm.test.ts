import assert from 'node:assert/strict'
import { onEveryPlace } from '../../../support/place.ts'
import { storm } from './storm.ts'

onEveryPlace('everything comes one to four times, in any order, to three processes that are killed', async (place) => {
  const result = await storm(place, { instances: 12, files: 4, processes: 3, kills: 4, seed: 7 })
  assert.ok(result.kills > 0 && result.deliveries > 2 * 12)
})
