import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import { createRandom } from '../src/testing/random.ts'
import { crowd } from '../test/proof/runs/crowd.ts'
import { createPlace, placeKinds } from '../test/support/place.ts'
import { startServers } from '../tools/servers/index.ts'

/**
 * `npm run lab -- run-queues`: ten thousand runs of one queue over four processes, of which three are killed; its limits on
 * runs at once, in all and by key, its rate and its priorities are checked from the times in the journals, and that each of
 * these limits was reached.
 */
const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '10000' },
    workers: { type: 'string', default: '4' },
    kills: { type: 'string', default: '3' },
    concurrency: { type: 'string', default: '60' },
    perKey: { type: 'string', default: '9' },
    /** Runs that begin within five seconds. */
    rate: { type: 'string', default: '1000' },
    /** `sqlite` or `postgres`; both, when left out. */
    on: { type: 'string' },
    seed: { type: 'string', default: '1' },
  },
})

type Limits = [concurrency: number, perKey: number, rate: number]

const RATE_SPAN_MS = 5_000
const PROGRESS_EVERY_MS = 5_000

const kinds = placeKinds.filter((kind) => values.on === undefined || values.on === kind)
if (kinds.length === 0) throw new Error(`--on is one of ${placeKinds.join(', ')}`)
const servers = await startServers(kinds.includes('postgres') ? ['postgres'] : [])
Object.assign(process.env, servers.env)
try {
  for (const kind of kinds) {
    const place = await createPlace(kind)
    let saidMs = 0
    const progress = (ended: number) => {
      if (performance.now() - saidMs < PROGRESS_EVERY_MS) return
      saidMs = performance.now()
      console.log(`${kind}: ${ended} of ${values.runs} runs`)
    }
    try {
      const [concurrency, perKey, limit] = [values.concurrency, values.perKey, values.rate].map(Number) as Limits
      const figures = await crowd(place, {
        runs: Number(values.runs),
        workers: Number(values.workers),
        kills: Number(values.kills),
        concurrency,
        perKey,
        rate: { limit, perMs: RATE_SPAN_MS },
        random: createRandom(Number(values.seed)),
        progress,
      })
      console.log(`${kind}: ${JSON.stringify(figures)}: every limit held`)
      // A limit that was never reached would not have been tried.
      const { places, placesOfAKey, mostInSpan } = figures
      assert.deepEqual(
        { places, placesOfAKey, mostInSpan },
        { places: concurrency, placesOfAKey: perKey, mostInSpan: limit },
      )
      console.log(`${kind}: every limit was reached`)
    } finally {
      await place.end()
    }
  }
} finally {
  await servers.stop()
}
