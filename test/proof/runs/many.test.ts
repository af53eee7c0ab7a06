import assert from 'node:assert/strict'
import { onEveryPlace } from '../../support/place.ts'
import { changed, replayMany } from './many.ts'

onEveryPlace('many runs are replayed, and those that would go another way are found', async (place) => {
  const figures = await replayMany(place, 150, changed)
  assert.deepEqual(figures, { identical: 148, 'identical-but-for-ignored-paths': 0, diverged: 2, performed: 0 })
})
