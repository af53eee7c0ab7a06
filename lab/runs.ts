import { parseArgs } from 'node:util'
import { createRandom } from '../src/testing/random.ts'
import { killWorkers } from '../test/proof/runs/kills.ts'
import { changed, replayMany } from '../test/proof/runs/many.ts'
import { createPlace, placeKinds } from '../test/support/place.ts'
import { startServers } from '../tools/servers/index.ts'
import { replayByCommand } from './runs/replay-command.ts'

/**
 * `npm run lab -- runs`: the full counts of what `npm test` runs a small share of. Three processes drive runs of ten
 * steps and are killed at random; then a thousand runs are replayed, by an engine and by `onceonly replay --all`.
 */
const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '500' },
    kills: { type: 'string', default: '60' },
    workers: { type: 'string', default: '3' },
    replays: { type: 'string', default: '1000' },
    /** `sqlite` or `postgres`; both, when left out. */
    on: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 32) },
  },
})

const PROGRESS_EVERY_MS = 5_000

const kinds = placeKinds.filter((kind) => values.on === undefined || values.on === kind)
if (kinds.length === 0) throw new Error(`--on is one of ${placeKinds.join(', ')}`)
const random = createRandom(Number(values.seed))
console.log(`seed ${values.seed} (it chooses the moments; the machine decides what happens in them)`)

const servers = await startServers(kinds.includes('postgres') ? ['postgres'] : [])
Object.assign(process.env, servers.env)
try {
  for (const kind of kinds) {
    const startedMs = performance.now()
    const seconds = () => ((performance.now() - startedMs) / 1_000).toFixed(1)
    let saidMs = 0
    const say = (line: string) => {
      if (performance.now() - saidMs < PROGRESS_EVERY_MS) return
      saidMs = performance.now()
      console.log(`${kind}, ${seconds()} s: ${line}`)
    }
    const place = await createPlace(kind)
    try {
      const [runs, workers, kills] = [Number(values.runs), Number(values.workers), Number(values.kills)]
      const progress = (finished: number, killed: number) => say(`${finished} of ${runs} runs, ${killed} kills`)
      const figures = await killWorkers(place, { runs, workers, kills, random, progress })
      console.log(`${kind}: ${JSON.stringify(figures)} in ${seconds()} s: every run ended, no step acted twice`)
    } finally {
      await place.end()
    }
    const fresh = await createPlace(kind)
    try {
      const total = Number(values.replays)
      const replayed = await replayMany(fresh, total, changed, (done) => say(`${done} of ${total} replayed`))
      console.log(`${kind}: ${JSON.stringify(replayed)} in ${seconds()} s`)
      const by = await replayByCommand(fresh, say)
      console.log(`${kind}: onceonly replay --all ended with ${by.status} in ${by.seconds.toFixed(1)} s: ${by.summary}`)
      const found = `${replayed.identical} identical`
      if (by.status !== (replayed.diverged > 0 ? 1 : 0) || !by.summary.includes(found)) {
        throw new Error('The command found something else than the engine.')
      }
    } finally {
      await fresh.end()
    }
  }
} finally {
  await servers.stop()
}
