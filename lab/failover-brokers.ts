import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { runStorm } from '../test/proof/events/outbox/storm.ts'
import { createPlace } from '../test/support/place.ts'
import type { BrokerCluster } from '../tools/clusters/nats.ts'
import { startNatsCluster } from '../tools/clusters/nats.ts'
import { startRabbitmqCluster } from '../tools/clusters/rabbitmq.ts'
import { createReporter, skipLoudly, stopOnSignals } from './failover/report.ts'

/**
 * `npm run lab -- failover-brokers`: three NATS servers with streams of three replicas, and three RabbitMQ nodes with quorum
 * queues. While an outbox is emptied by three relays, one node is killed and comes back, and another one is cut off from the
 * others and comes back. Every committed message must arrive, in the order of its key, and none that was rolled back.
 */
const { values } = parseArgs({
  options: {
    /** `nats`, `rabbitmq` or `both`. */
    on: { type: 'string', default: 'both' },
    rows: { type: 'string', default: '12000' },
    /** Of each of four writers, after every commit of 25 rows. */
    'rest-ms': { type: 'string', default: '400' },
    /** How long a node is gone, and how long it is cut off. */
    'away-seconds': { type: 'string', default: '10' },
  },
})

const PATIENCE_MS = 180_000
const PROGRESS_EVERY_MS = 5_000
const awayMs = Number(values['away-seconds']) * 1_000

const starts = { nats: startNatsCluster, rabbitmq: startRabbitmqCluster } as const
const kinds = (['nats', 'rabbitmq'] as const).filter((kind) => values.on === 'both' || values.on === kind)
for (const kind of kinds) {
  const say = createReporter(kind)
  say('starting three nodes …')
  const cluster = await starts[kind]()
  if (cluster === null) {
    skipLoudly(kind)
    continue
  }
  stopOnSignals(cluster.stop)
  try {
    await storm(kind, cluster, say)
  } finally {
    await cluster.stop()
  }
}

async function storm(
  kind: 'nats' | 'rabbitmq',
  cluster: BrokerCluster,
  say: ReturnType<typeof createReporter>,
): Promise<void> {
  const place = await createPlace('sqlite')
  const rows = Number(values.rows)
  const urls = cluster.nodes.map(({ url }) => url)
  const harmed = Promise.withResolvers<void>()
  let [harming, saidMs, lastMs, gapMs, last] = [false, 0, performance.now(), 0, 0]
  try {
    const figures = await runStorm(place, {
      rows,
      broker: {
        kind,
        url: urls[0] ?? '',
        urls,
        replicas: cluster.nodes.length,
        namespace: `lab-${randomBytes(6).toString('hex')}`,
      },
      leaseMs: 5_000,
      patienceMs: PATIENCE_MS,
      ordered: true,
      restMs: Number(values['rest-ms']),
      harmed: harmed.promise,
      harm(_relays, arrived) {
        if (harming || arrived < rows / 10) return
        harming = true
        void harm(cluster, say).then(harmed.resolve, harmed.reject)
      },
      progress(arrived) {
        const nowMs = performance.now()
        if (arrived > last) {
          gapMs = Math.max(gapMs, nowMs - lastMs)
          ;[last, lastMs] = [arrived, nowMs]
        }
        if (nowMs - saidMs < PROGRESS_EVERY_MS) return
        saidMs = nowMs
        say(`${arrived} of ${rows} messages`)
      },
    })
    say('every committed message arrived, each key in its order', { ...figures, longestGapMs: Math.round(gapMs) })
  } finally {
    await place.end()
  }
}

async function harm({ nodes, partition }: BrokerCluster, say: ReturnType<typeof createReporter>): Promise<void> {
  const [first, second] = nodes
  if (first === undefined || second === undefined) throw new Error('A cluster has three nodes.')
  await first.kill()
  say(`${first.name} is killed`)
  await sleep(awayMs)
  await first.revive()
  say(`${first.name} is started again`)
  // It must have caught up: two of three make a majority.
  await sleep(awayMs)
  const heal = await partition(second)
  say(`${second.name} is cut off from the others`)
  await sleep(awayMs)
  await heal()
  say(`${second.name} sees the others again`)
}
