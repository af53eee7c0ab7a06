import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { after, before, describe, test } from 'node:test'
import { Cluster, Redis } from 'ioredis'
import type { Ledger, Store } from 'onceonly'
import { createLedger, isOnceError } from 'onceonly'
import { redisStore } from 'onceonly/redis'
import { until } from '../../../../src/testing/until.ts'
import type { Servers } from '../../../../tools/servers/index.ts'
import { startRecipes } from '../../../../tools/servers/index.ts'
import { redis } from '../../../../tools/servers/redis.ts'
import { passKit } from '../../../support/stores/redis/kit.ts'

const MIGRATE_MS = 60_000
const SLOTS = 16_384
/** Below the ports that systems give away by themselves, one of which the node has. */
const BUS_PORTS_BELOW = 28_000

const node = (number: number) => ({
  ...redis,
  kind: 'redis-cluster',
  variable: `ONCEONLY_TEST_REDIS_CLUSTER_${number}_URL`,
  script: (...given: Parameters<typeof redis.script>) =>
    `${redis.script(...given)} --cluster-enabled yes --cluster-announce-ip 127.0.0.1 --cluster-port ${given[1].port - BUS_PORTS_BELOW}`,
})

describe('a cluster of three nodes', () => {
  let servers: Servers
  let admins: Redis[] = []
  let client: Cluster | null = null

  before(async () => {
    servers = await startRecipes([1, 2, 3].map(node), { log: () => {} })
    if (servers.started.length < 3) return
    const ports = servers.started.map(({ port }) => port)
    admins = ports.map((port) => new Redis(port))
    const share = Math.ceil(SLOTS / admins.length)
    for (const [at, admin] of admins.entries()) {
      await admin.call('CLUSTER', 'ADDSLOTSRANGE', at * share, Math.min(SLOTS, (at + 1) * share) - 1)
      for (const port of ports) await admin.call('CLUSTER', 'MEET', '127.0.0.1', port, port - BUS_PORTS_BELOW)
    }
    // Every node must know all of them, because each redirects its clients.
    for (const admin of admins) {
      await until('the node knows of all', async () => {
        const info = String(await admin.call('CLUSTER', 'INFO'))
        return info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3')
      })
    }
    client = new Cluster(ports.map((port) => ({ host: '127.0.0.1', port })))
  })
  after(async () => {
    client?.disconnect()
    for (const admin of admins) admin.disconnect()
    await servers.stop()
  })

  const clusterOf = (t: TestContext): Cluster | null => {
    if (client === null) t.skip('there is no Redis server')
    return client
  }

  test('the kit passes, through the client of the cluster', async (t) => {
    const cluster = clusterOf(t)
    if (cluster === null) return
    await passKit(cluster, 'cluster', { buckets: 6 })
  })

  test('one node of the cluster that may lose or remove records is named', async (t) => {
    const cluster = clusterOf(t)
    if (cluster === null) return
    const [, , last] = admins
    if (last === undefined) return assert.fail('there is no third node')
    for (const [setting, unsafe, risk] of [
      ['appendonly', 'no', /appendonly.*is off/],
      ['maxmemory-policy', 'allkeys-lru', /maxmemory-policy.*allkeys-lru/],
    ] as const) {
      const store = redisStore(cluster, { prefix: `durable-${setting}`, buckets: 16, allowEviction: true })
      t.after(() => store.stop())
      const found = async () =>
        (await store.durability({ timeoutMs: 10_000 })).risks.filter(({ found }) => risk.test(found))
      const [, safe] = (await last.config('GET', setting)) as [string, string]
      assert.deepEqual(await found(), [], setting)
      await last.config('SET', setting, unsafe)
      t.after(() => last.config('SET', setting, safe))
      assert.equal((await found()).length, 1, setting)
      await last.config('SET', setting, safe)
    }
  })

  test('buckets that move to another node in mid-load: every key has one effect, and its answer is found again', async (t) => {
    const cluster = clusterOf(t)
    if (cluster === null) return
    const stores = [1, 2].map(() => redisStore(cluster, { prefix: 'moved', buckets: 4 }))
    const ledgers = stores.map((store) => createLedger({ store, background: false }))
    t.after(async () => {
      for (const ledger of ledgers) await ledger.stop()
      for (const store of stores) await store.stop()
    })
    const effects = new Map<string, number>()
    const charges = ledgers.map((ledger) => ledger.operation<null>({ name: 'charge', effect: 'external' }))
    const run = (at: number, key: string) =>
      charges[at]?.run({ tenant: 'acme', caller: 'ann', key }, null, async () => {
        effects.set(key, (effects.get(key) ?? 0) + 1)
        return `made for ${key}`
      })

    let moving = true
    let asked = 0
    const load = Array.from({ length: 8 }, async (_, worker) => {
      for (let at = 0; moving || at < 5; at++) {
        const key = `${worker}:${at}`
        asked++
        const values = await Promise.all([0, 1].map((ledger) => persistently(() => run(ledger, key))))
        assert.deepEqual(values, [`made for ${key}`, `made for ${key}`])
      }
    })
    const moved = async () => {
      for (let bucket = 0; bucket < 4; bucket++) await moveSlot(admins, `{moved:${bucket}}`)
    }
    await Promise.all([moved().finally(() => void (moving = false)), ...load])
    assert.equal(effects.size, asked)
    assert.deepEqual(new Set(effects.values()), new Set([1]))
    const replayed = createLedger({ store: stores[0] as Store, background: false }) as Ledger<unknown>
    const charge = replayed.operation<null>({ name: 'charge', effect: 'external' })
    const again = [...effects.keys()].map((key) =>
      charge.run({ tenant: 'acme', caller: 'ann', key }, null, async () => assert.fail('a second effect')),
    )
    assert.deepEqual(
      await Promise.all(again),
      [...effects.keys()].map((key) => `made for ${key}`),
    )
    await replayed.stop()
  })
})

/** Retries as a client does. */
async function persistently<T>(work: () => Promise<T> | undefined): Promise<T | undefined> {
  const { value } = await until('the store takes it', async () => {
    try {
      return { value: await work() }
    } catch (error) {
      const retryable = isOnceError(error) && ['store_unavailable', 'store_busy', 'in_progress'].includes(error.code)
      if (!retryable) throw error
      return null
    }
  })
  return value
}

/** Moves everything of a hash tag from the node that has it to the next, as an operator does, key by key. */
async function moveSlot(admins: readonly Redis[], tag: string): Promise<void> {
  const [first] = admins
  const slot = Number(await first?.call('CLUSTER', 'KEYSLOT', tag))
  const ids = await Promise.all(admins.map(async (admin) => String(await admin.call('CLUSTER', 'MYID'))))
  const ranges = (await first?.call('CLUSTER', 'SLOTS')) as [number, number, [string, number, string]][]
  const owner = ranges.find(([from, to]) => from <= slot && slot <= to)?.[2][2] ?? ''
  const from = ids.indexOf(owner)
  const to = (from + 1) % admins.length
  const [source, target] = [admins[from], admins[to]]
  assert.ok(source !== undefined && target !== undefined)
  await target.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', owner)
  await source.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', ids[to] ?? '')
  for (;;) {
    const keys = (await source.call('CLUSTER', 'GETKEYSINSLOT', slot, 10)) as string[]
    if (keys.length === 0) break
    await source.call('MIGRATE', '127.0.0.1', target.options.port ?? 0, '', 0, MIGRATE_MS, 'KEYS', ...keys)
  }
  for (const admin of [target, source, ...admins]) await admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', ids[to] ?? '')
}
