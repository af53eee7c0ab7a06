import { parseArgs } from 'node:util'
import type { ArenaKind } from '../test/proof/races/arena.ts'
import { race } from '../test/proof/races/race.ts'
import { withServers } from '../tools/tests/servers.ts'

/** `npm run lab -- races`: the full count of the race that `npm test` runs a small share of. */
const { values } = parseArgs({
  options: {
    attempts: { type: 'string', default: '10000' },
    identities: { type: 'string', default: '100' },
    processes: { type: 'string', default: '4' },
    on: { type: 'string', multiple: true, default: ['sqlite', 'postgres', 'redis'] },
  },
})

async function runOn(kind: ArenaKind): Promise<void> {
  const size = {
    processes: Number(values.processes),
    attemptsPerProcess: Number(values.attempts),
    identities: Number(values.identities),
  }
  console.log(
    `${kind}: ${size.processes} processes, ${size.attemptsPerProcess} attempts each, ${size.identities} identities`,
  )
  const result = await race({ kind, ...size, progress: (line) => console.log(`  ${line}`) })
  console.log(
    `${kind}: ${result.effects} effects, ${result.answers} answers, ${result.events} recorded calls that fit,`,
  )
  console.log(`  ${result.seconds.toFixed(1)} s, ${JSON.stringify(result.counts)}`)
}

const kinds = values.on as ArenaKind[]
if (kinds.includes('sqlite')) await runOn('sqlite')
for (const kind of ['postgres', 'redis'] as const) {
  if (kinds.includes(kind)) await withServers([kind], () => runOn(kind))
}
