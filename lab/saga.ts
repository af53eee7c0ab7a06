import { parseArgs } from 'node:util'
import { storm } from '../test/proof/events/saga/storm.ts'
import type { PlaceKind } from '../test/support/place.ts'
import { createPlace } from '../test/support/place.ts'
import { withServers } from '../tools/tests/servers.ts'

/** `npm run lab -- saga`: the full count of the storm that `npm test` runs a small share of. */
const { values } = parseArgs({
  options: {
    instances: { type: 'string', default: '1000' },
    files: { type: 'string', default: '5' },
    processes: { type: 'string', default: '4' },
    kills: { type: 'string', default: '40' },
    seed: { type: 'string', default: '1' },
    on: { type: 'string', multiple: true, default: ['sqlite', 'postgres'] },
  },
})

async function runOn(kind: PlaceKind): Promise<void> {
  const place = await createPlace(kind)
  const startedMs = performance.now()
  try {
    const size = {
      instances: Number(values.instances),
      files: Number(values.files),
      processes: Number(values.processes),
      kills: Number(values.kills),
      seed: Number(values.seed),
    }
    console.log(`${kind}: ${JSON.stringify(size)}`)
    const result = await storm(place, { ...size, progress: (line) => console.log(`  ${line}`) })
    const seconds = (performance.now() - startedMs) / 1_000
    console.log(`${kind}: ${JSON.stringify(result)} in ${seconds.toFixed(1)} s; every command was sent once`)
  } finally {
    await place.end()
  }
}

const kinds = values.on as PlaceKind[]
if (kinds.includes('sqlite')) await runOn('sqlite')
if (kinds.includes('postgres')) await withServers(['postgres'], () => runOn('postgres'))
