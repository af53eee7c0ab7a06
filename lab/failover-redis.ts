import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Cluster, Redis } from 'ioredis'
import { isOnceError } from 'onceonly'
import type { RedisStore, StoreReset } from 'onceonly/redis'
import { redisStore } from 'onceonly/redis'
import { examine } from '../src/admin/core/doctor.ts'
import { ask, startRedisCluster, startSentinels } from '../tools/clusters/redis.ts'
import { startLoad, whatIsKept } from './failover/load.ts'
import { createReporter, harm, skipLoudly, stopOnSignals } from './failover/report.ts'

/**
 * `npm run lab -- failover-redis`: Redis under Sentinel, and a Redis Cluster. Under load a master is killed and paused, and its
 * replica takes over; then a replica that is behind is promoted, so that acknowledged writes are lost on purpose: every process
 * must notice. At the end a server that would evict records is refused.
 */
const { values } = parseArgs({
  options: {
    /** `sentinel`, `cluster` or `both`. */
    on: { type: 'string', default: 'both' },
    callers: { type: 'string', default: '8' },
  },
})

const PROCESSES = 2
const REST_MS = 20
const ANSWERS = 100
const BOUND_MS = 120_000
/** Acknowledged by the master alone, and lost with it. */
const BEHIND_MS = 3_000

if (values.on !== 'cluster') await onSentinel()
if (values.on !== 'sentinel') await onCluster()

type Say = ReturnType<typeof createReporter>
type Client = Redis | Cluster

interface Place {
  open(): Client
  /** Kills and pauses, and waits until each is whole again. */
  readonly harms: readonly ['kill' | 'pause', () => Promise<() => Promise<void>>][]
  /** Makes the replicas stand still, and gives what loses the writes of the meantime. */
  fallBehind(): Promise<() => Promise<void>>
  untilWhole(): Promise<void>
}

async function onSentinel(): Promise<void> {
  const say = createReporter('sentinel')
  say('starting a master, two replicas and three sentinels …')
  // The promise is to be broken below: a master alone must accept writes.
  const cluster = await startSentinels({ nodes: 3, minReplicas: 0 })
  if (cluster === null) return skipLoudly('Redis Sentinel')
  stopOnSignals(cluster.stop)
  const master = async () => (await cluster.master()) ?? assert.fail('there is no master')
  try {
    await failover(say, {
      open: () => quiet(new Redis({ ...cluster.client, lazyConnect: true })),
      harms: (['kill', 'pause'] as const).map((how) => [how, async () => await harm(await master(), how)]),
      untilWhole: cluster.untilWhole,
      async fallBehind() {
        const main = await master()
        const replicas = cluster.nodes.filter((node) => node !== main)
        for (const replica of replicas) await replica.pause()
        await cutOff(main.port)
        return async () => {
          await main.kill()
          for (const replica of replicas) replica.resume()
        }
      },
    })
    await evicting(say, await master().then(({ port }) => port))
  } finally {
    await cluster.stop()
  }
}

async function onCluster(): Promise<void> {
  const say = createReporter('cluster')
  say('starting three masters with a replica each …')
  const cluster = await startRedisCluster({ masters: 3, minReplicas: 0 })
  if (cluster === null) return skipLoudly('Redis Cluster')
  stopOnSignals(cluster.stop)
  const owner = async () => (await cluster.ownerOf('{onceonly:0}')) ?? assert.fail('the bucket has no node')
  try {
    await failover(say, {
      open: () =>
        quiet(
          new Cluster(
            cluster.ports.map((port) => ({ host: '127.0.0.1', port })),
            { lazyConnect: true },
          ),
        ),
      harms: (['kill', 'pause'] as const).map((how) => [how, async () => await harm(await owner(), how)]),
      untilWhole: cluster.untilWhole,
      async fallBehind() {
        const main = await owner()
        const id = String(await ask(main.port, 'CLUSTER', 'MYID'))
        const nodes = String(await ask(main.port, 'CLUSTER', 'NODES')).split('\n')
        const replica = nodes.find((line) => line.split(' ')[3] === id)
        const port = Number(/:(\d+)@/.exec(replica ?? '')?.[1])
        const follower = cluster.nodes.find((node) => node.port === port) ?? assert.fail('the node has no replica')
        await follower.pause()
        await cutOff(main.port)
        return async () => {
          await main.kill()
          follower.resume()
        }
      },
    })
  } finally {
    await cluster.stop()
  }
}

async function failover(say: Say, place: Place): Promise<void> {
  const resets: StoreReset[][] = []
  const stores = Array.from({ length: PROCESSES }, (_, at) => {
    const mine: StoreReset[] = []
    resets.push(mine)
    return redisStore(place.open(), {
      on(event) {
        mine.push(event)
        say(`process ${at + 1} noticed: ${event.what}`, { bucket: event.bucket })
      },
    })
  })
  const judge = redisStore(place.open())
  for (const { verdict, found, advice } of await examine(judge)) {
    if (verdict !== 'ok') say(`doctor: ${verdict}: ${found} ${advice ?? ''}`)
  }
  await gentle(say, place, stores, judge)
  for (const mine of resets) {
    if (mine.length > 0) say('a process saw writes that the old master alone had', { resets: mine })
    mine.length = 0
  }
  await losing(say, place, stores, judge, resets)
  for (const store of [...stores, judge]) await store.stop()
}

/** The master goes, and its replicas have everything or nearly everything. */
async function gentle(say: Say, place: Place, stores: readonly RedisStore[], judge: RedisStore): Promise<void> {
  const load = startLoad({ stores, callers: Number(values.callers), restMs: REST_MS })
  await load.untilAnswered(ANSWERS, BOUND_MS)
  for (const [how, hurt] of place.harms) {
    const [before, sinceMs, known] = [load.newestFence(), performance.now(), new Set(load.book.acknowledged.keys())]
    const back = await hurt()
    say(`the master is ${how === 'kill' ? 'killed' : 'paused'}`, { acknowledged: known.size })
    // Until a replica has taken over: answers of other buckets of a cluster do not count.
    await load.untilAnswered(ANSWERS, BOUND_MS)
    await sleep(BEHIND_MS)
    const recoveryMs = Math.round(load.longestGapMs(sinceMs))
    const newer = [...load.book.acknowledged].filter(
      ([key, { atMs }]) => !known.has(key) && atMs > sinceMs + recoveryMs,
    )
    const older = newer.filter(([, { fence }]) => fence <= before)
    say('a replica answers', { recoveryMs, fencesBack: older.length })
    await back()
    await place.untilWhole()
    say('it is back, and follows', { sinceMs: Math.round(performance.now() - sinceMs) })
  }
  await load.stop()
  await judgeBook(say, load, judge)
}

/** Acknowledged writes that no replica has are lost: every process notices. */
async function losing(
  say: Say,
  place: Place,
  stores: readonly RedisStore[],
  judge: RedisStore,
  resets: readonly StoreReset[][],
): Promise<void> {
  const lose = await place.fallBehind()
  const load = startLoad({ stores, callers: Number(values.callers), restMs: REST_MS })
  await sleep(BEHIND_MS)
  const acknowledged = load.book.acknowledged.size
  const sinceMs = performance.now()
  await lose()
  say('the master is lost, and its replicas are behind', { acknowledged })
  await load.untilAnswered(ANSWERS, BOUND_MS)
  say('a replica answers', { recoveryMs: Math.round(load.longestGapMs(sinceMs)) })
  await load.stop()
  const { lost } = await judgeBook(say, load, judge)
  say('each process noticed', { resets: resets.map((mine) => mine.map(({ what, bucket }) => `${what} ${bucket}`)) })
  if (lost > 0)
    assert.ok(
      resets.every((mine) => mine.length > 0),
      'every process notices',
    )
  else say('nothing was lost this time')
}

async function judgeBook(say: Say, load: ReturnType<typeof startLoad>, judge: RedisStore): Promise<{ lost: number }> {
  const { book } = load
  const kept = await whatIsKept(judge, book, false)
  const twice = [...book.effects].filter(([, times]) => times > 1)
  say('the books', {
    acknowledged: kept.asked,
    lost: kept.lost.length,
    held: kept.held.length,
    changed: kept.changed.length,
    effectsTwice: twice.length,
    unknown: book.unknown.size,
    events: Object.fromEntries(book.events),
  })
  assert.deepEqual(book.violations, [], 'no answer contradicts another')
  return { lost: kept.lost.length + kept.held.length }
}

/** What is on its way to a replica that stands still would reach it later: so the connections end. */
async function cutOff(port: number): Promise<void> {
  await ask(port, 'CLIENT', 'KILL', 'TYPE', 'replica')
}

async function evicting(say: Say, port: number): Promise<void> {
  await ask(port, 'CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
  const store = redisStore(quiet(new Redis(port, '127.0.0.1', { lazyConnect: true })))
  await assert.rejects(store.clock.now({ timeoutMs: 5_000 }), (error) => {
    if (isOnceError(error, 'bad_option')) say(`refused: ${error.message}`)
    return isOnceError(error, 'bad_option')
  })
  await store.stop()
}

/** A client without a listener would end the process when its server goes. */
function quiet<C extends Client>(client: C): C {
  client.on('error', () => {})
  return client
}
