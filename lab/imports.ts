import { parseArgs } from 'node:util'
import { withServers } from '../tools/tests/servers.ts'

/**
 * `npm run lab -- imports`: the full counts of what `npm test` runs a small share of. Uploads to three servers, storage
 * notifications one to four times in random order to any of them, servers killed at random. It ends at the first import
 * that is not completed, is parsed twice, or is complained about in a log.
 */
const { values } = parseArgs({
  options: {
    uploads: { type: 'string', default: '1000' },
    'uploads-per-kill': { type: 'string', default: '25' },
    /** `sqlite` (with its own bus), `rabbitmq` or `nats` (with PostgreSQL). */
    on: { type: 'string', multiple: true, default: ['sqlite', 'rabbitmq', 'nats'] },
  },
})

const SERVERS = 3

async function runOn(name: 'sqlite' | 'rabbitmq' | 'nats'): Promise<void> {
  // Loaded only now: they look for their servers as soon as they are.
  const [{ openWorld }, { runStorm }] = await Promise.all([
    import('../service/imports/test-imports.ts'),
    import('../service/imports/test-storm.ts'),
  ])
  const startedMs = performance.now()
  const say = (line: string) =>
    console.log(`${name}, ${((performance.now() - startedMs) / 1_000).toFixed(0)} s: ${line}`)
  const world = await openWorld(name)
  try {
    const cluster = await world.open(SERVERS)
    const figures = await runStorm(cluster, {
      uploads: Number(values.uploads),
      uploadsPerKill: Number(values['uploads-per-kill']),
      progress: say,
    })
    say(`Every import completed, one command per file. Good. ${JSON.stringify(figures)}`)
  } finally {
    await world.end()
  }
}

const names = (['sqlite', 'rabbitmq', 'nats'] as const).filter((name) => values.on.includes(name))
const brokers = names.filter((name) => name !== 'sqlite')
await withServers(brokers.length > 0 ? ['postgres', ...brokers] : [], async () => {
  for (const name of names) await runOn(name)
})
