import { parseArgs } from 'node:util'
import { createRandom } from '../src/testing/random.ts'
import { killUnderLoad } from '../test/proof/crash/load.ts'
import { killAtMoments } from '../test/proof/crash/moments.ts'
import type { Place, PlaceKind } from '../test/support/place.ts'
import { createPlace, placeKinds } from '../test/support/place.ts'
import { startServers } from '../tools/servers/index.ts'

/**
 * Real processes, killed for real, with full counts: in the middle of claims, settles and commits at random
 * microseconds, and at random under load. It ends at the first book that does not agree.
 */
const { values } = parseArgs({
  options: {
    /** Processes that die in the middle of one command, per store. */
    moments: { type: 'string', default: '1200' },
    /** Workers that die under load, per store. */
    kills: { type: 'string', default: '600' },
    workers: { type: 'string', default: '4' },
    /** `sqlite` or `postgres`; both, when left out. */
    on: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 32) },
  },
})

const HOUR_MS = 3_600_000
const PROGRESS_EVERY = 50

const kinds = placeKinds.filter((kind) => values.on === undefined || values.on === kind)
if (kinds.length === 0) throw new Error(`--on is one of ${placeKinds.join(', ')}`)
const random = createRandom(Number(values.seed))
console.log(`seed ${values.seed} (it chooses the moments; the machine decides what happens in them)`)

const servers = await startServers(kinds.includes('postgres') ? ['postgres'] : [])
Object.assign(process.env, servers.env)
try {
  for (const kind of kinds) {
    await at(kind, 'moments', Number(values.moments), (place, rounds, progress) =>
      killAtMoments(place, { rounds, atOnce: 3, random, progress }),
    )
    await at(kind, 'kills under load', Number(values.kills), (place, kills, progress) =>
      killUnderLoad(place, { workers: Number(values.workers), kills, boundMs: HOUR_MS, random, progress }),
    )
  }
} finally {
  await servers.stop()
}

async function at(
  kind: PlaceKind,
  what: string,
  count: number,
  work: (place: Place, count: number, progress: (done: number) => void) => Promise<unknown>,
): Promise<void> {
  const startedMs = performance.now()
  const seconds = () => ((performance.now() - startedMs) / 1_000).toFixed(1)
  const place = await createPlace(kind)
  try {
    const figures = await work(place, count, (done) => {
      if (done % PROGRESS_EVERY === 0) console.log(`${kind}: ${done} of ${count} ${what}, ${seconds()} s`)
    })
    console.log(`${kind}: ${count} ${what} in ${seconds()} s: ${JSON.stringify(figures)}`)
  } finally {
    await place.end()
  }
}
