import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import type { BrokerAddress } from '../test/proof/events/outbox/broker.ts'
import { runStorm } from '../test/proof/events/outbox/storm.ts'
import type { PlaceKind } from '../test/support/place.ts'
import { createPlace, placeKinds } from '../test/support/place.ts'
import type { ServerKind } from '../tools/servers/index.ts'
import { startServers } from '../tools/servers/index.ts'

/**
 * Many rows, three relays of which two are killed in the middle of their work, and a broker that is restarted once. Every
 * committed row must arrive, in the order of its key, and none that was rolled back.
 */
const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '50000' },
    /** `local`, `rabbitmq` or `nats`. */
    broker: { type: 'string', default: 'local' },
    /** `sqlite` or `postgres`; both, when left out. */
    on: { type: 'string' },
    'lease-ms': { type: 'string', default: '3000' },
  },
})

const PROGRESS_EVERY_MS = 5_000
const PATIENCE_MS = 90_000

const kinds = placeKinds.filter((kind) => values.on === undefined || values.on === kind)
if (kinds.length === 0) throw new Error(`--on is one of ${placeKinds.join(', ')}`)
const { broker } = values
if (broker !== 'local' && broker !== 'rabbitmq' && broker !== 'nats') {
  throw new Error('--broker is one of local, rabbitmq, nats')
}
const rows = Number(values.rows)

const wanted: ServerKind[] = broker === 'local' ? [] : [broker]
if (kinds.includes('postgres')) wanted.push('postgres')
const servers = await startServers(wanted)
Object.assign(process.env, servers.env)
try {
  for (const kind of kinds) await storm(kind)
} finally {
  await servers.stop()
}

async function storm(kind: PlaceKind): Promise<void> {
  const place = await createPlace(kind)
  const server = servers.started.find((started) => started.kind === broker)
  const said = { atMs: performance.now() }
  let [killed, restarted] = [0, false]
  try {
    const figures = await runStorm(place, {
      rows,
      broker: addressOf(),
      leaseMs: Number(values['lease-ms']),
      patienceMs: PATIENCE_MS,
      async harm(relays, arrived) {
        if (killed < 2 && arrived > ((killed + 1) * rows) / 5) relays[killed++]?.signal('SIGKILL')
        // The local broker is in the store, and has no server of its own.
        if (!restarted && server !== undefined && arrived > rows / 2) {
          restarted = true
          await server.halt()
          await server.revive()
        }
      },
      progress(arrived) {
        if (performance.now() - said.atMs < PROGRESS_EVERY_MS) return
        said.atMs = performance.now()
        console.log(
          `${kind}, ${broker}: ${arrived} of ${rows} rows, ${killed} relays killed${restarted ? ', restarted' : ''}`,
        )
      },
    })
    console.log(`${kind}, ${broker}: ${JSON.stringify({ ...figures, killed, restarted })}`)
  } finally {
    await place.end()
  }
}

function addressOf(): BrokerAddress {
  if (broker === 'local') return { kind: 'local' }
  const url = process.env[`ONCEONLY_TEST_${broker.toUpperCase()}_URL`]
  if (url === undefined) throw new Error(`There is no ${broker} server.`)
  return { kind: broker as 'rabbitmq' | 'nats', url, namespace: `lab-${randomBytes(6).toString('hex')}` }
}
