import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Cluster, Redis } from 'ioredis'
import type { Store } from 'onceonly'
import { createRedisStore } from 'onceonly/redis'
import { conformanceCases, runCase } from 'onceonly/testing'
import { startRecipes } from '../../tools/servers/index.ts'
import { redis } from '../../tools/servers/redis.ts'
import { until } from '../brokers/until.ts'

const PATIENCE_MS = 20_000

/** One node with all slots refuses what several nodes could not do: a script over keys of more than one slot. */
const clustered = {
  ...redis,
  kind: 'redis-cluster',
  variable: 'ONCEONLY_TEST_REDIS_CLUSTER_URL',
  script: (...given: Parameters<typeof redis.script>) =>
    `${redis.script(...given)} --cluster-enabled yes --cluster-announce-ip 127.0.0.1`,
}

test('the kit passes on a cluster, through its own client', async (t) => {
  await using servers = await startRecipes([clustered], { log: () => {} })
  const [server] = servers.started
  if (server === undefined) return t.skip('there is no Redis server')
  const admin = new Redis(server.url)
  await admin.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383)
  await until(async () => String(await admin.call('CLUSTER', 'INFO')).includes('cluster_state:ok'), PATIENCE_MS)
  await assert.rejects(admin.mget('a', 'b'), /CROSSSLOT/)
  const client = new Cluster([{ host: '127.0.0.1', port: server.port }])
  let prefixes = 0
  try {
    for (const each of conformanceCases({ histories: 2 })) {
      const prefix = `cluster:${++prefixes}`
      const stores: Store[] = []
      const another = async () => {
        const store = createRedisStore({ client, prefix, testClock: true, buckets: 16 })
        stores.push(store)
        return store
      }
      const close = async () => {
        for (const store of stores) await store.stop()
      }
      await runCase(each, async () => ({ store: await another(), another, close }))
    }
  } finally {
    client.disconnect()
    admin.disconnect()
  }
})
