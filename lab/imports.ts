import { parseArgs } from 'node:util'
import { withServers } from '../tools/tests/servers.ts'

const worlds = ['sqlite', 'postgres', 'rabbitmq', 'nats'] as const

/**
 * `npm run lab -- imports`: the full counts of what `npm test` runs a small share of. Uploads to several servers, storage
 * notifications one to four times in random order to any of them, servers killed at random. It ends at the first import
 * that is not completed, is parsed twice, or is complained about in a log.
 */
const { values } = parseArgs({
  options: {
    uploads: { type: 'string', default: '1000' },
    'uploads-per-kill': { type: 'string', default: '25' },
    servers: { type: 'string', default: '3' },
    /** `sqlite` or `postgres` (each with its own bus), `rabbitmq` or `nats` (with PostgreSQL). */
    on: { type: 'string', multiple: true, default: [...worlds] },
  },
})

async function runOn(name: (typeof worlds)[number]): Promise<void> {
  // Loaded only now: they look for their servers as soon as they are.
  const [{ openWorld }, { runStorm }] = await Promise.all([
    import('../test/support/service/imports/imports.ts'),
    import('../test/proof/service/imports/storm.ts'),
  ])
  const startedMs = performance.now()
  const say = (line: string) =>
    console.log(`${name}, ${((performance.now() - startedMs) / 1_000).toFixed(0)} s: ${line}`)
  const world = await openWorld(name)
  try {
    const cluster = await world.open(Number(values.servers))
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

const unknown = values.on.find((name) => !worlds.some((each) => each === name))
if (unknown !== undefined) throw new Error(`--on is one of ${worlds.join(', ')}, not ${unknown}`)
const names = worlds.filter((name) => values.on.includes(name))
const brokers = names.filter((name) => name === 'rabbitmq' || name === 'nats')
await withServers(names.some((name) => name !== 'sqlite') ? ['postgres', ...brokers] : [], async () => {
  for (const name of names) await runOn(name)
})
