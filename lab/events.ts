import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { runChain } from '../test/proof/events/chain.ts'
import { createPlace } from '../test/support/place.ts'
import type { ServerKind } from '../tools/servers/index.ts'
import { startServers } from '../tools/servers/index.ts'

/**
 * `npm run lab -- events`: the full count of the chain that `npm test` runs a small share of. Every search goes from the
 * outbox over relay and broker to its saga and an ordered inbox, and back, while replicas are killed and the broker is
 * restarted once.
 */
const { values } = parseArgs({
  options: {
    searches: { type: 'string', default: '1000' },
    files: { type: 'string', default: '4' },
    replicas: { type: 'string', default: '4' },
    kills: { type: 'string', default: '6' },
    /** `local` is on SQLite, the others are on PostgreSQL. */
    broker: { type: 'string', multiple: true, default: ['local', 'rabbitmq', 'nats'] },
  },
})

const PROGRESS_EVERY_MS = 5_000
const PATIENCE_MS = 120_000

for (const kind of values.broker) {
  if (kind !== 'local' && kind !== 'rabbitmq' && kind !== 'nats') {
    throw new Error('--broker is one of local, rabbitmq, nats')
  }
  await run(kind)
}

async function run(kind: 'local' | 'rabbitmq' | 'nats'): Promise<void> {
  const wanted: ServerKind[] = kind === 'local' ? [] : ['postgres', kind]
  const servers = await startServers(wanted)
  Object.assign(process.env, servers.env)
  const server = servers.started.find((started) => started.kind === kind)
  const place = await createPlace(kind === 'local' ? 'sqlite' : 'postgres')
  let saidMs = performance.now()
  try {
    const namespace = `lab-${randomBytes(6).toString('hex')}`
    const figures = await runChain(place, {
      searches: Number(values.searches),
      files: Number(values.files),
      replicas: Number(values.replicas),
      kills: Number(values.kills),
      broker: kind === 'local' ? { kind } : { kind, url: server?.url ?? '', namespace },
      restart: server === undefined ? null : () => server.halt().then(() => server.revive()),
      patienceMs: PATIENCE_MS,
      progress(line) {
        if (performance.now() - saidMs < PROGRESS_EVERY_MS) return
        saidMs = performance.now()
        console.log(`${kind}: ${line}`)
      },
    })
    console.log(`${kind}: ${JSON.stringify(figures)}`)
  } finally {
    await place.end()
    await servers.stop()
    for (const name of Object.keys(servers.env)) delete process.env[name]
  }
}
