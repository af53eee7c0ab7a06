import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import type { LedgerEvent, Store } from 'onceonly'
import { createLedger, isOnceError } from 'onceonly'
import type { RedisStore, StoreReset } from 'onceonly/redis'
import { redisStore } from 'onceonly/redis'
import { applyTo } from '../../../../src/testing/apply-all.ts'
import { until } from '../../../../src/testing/until.ts'
import type { Servers, StartedServer } from '../../../../tools/servers/index.ts'
import { startOwn } from '../../../support/own-server.ts'
import { pause, resume } from '../../../support/pause.ts'

const CALL = { timeoutMs: 60_000 }
const SHORT = { timeoutMs: 500 }
/** Longer than a test may take: whatever waits for it hangs. */
const FOR_EVER = { timeoutMs: 600_000 }
const who = (key: string) => ({ tenant: 'acme', caller: 'ann', key })

/** A server that only this file uses goes away, comes back, and forgets. */
describe('Redis in trouble', () => {
  let servers: Servers
  let server: StartedServer
  let client: Redis
  let prefixes = 0
  const ends: (() => Promise<unknown>)[] = []

  before(async () => {
    servers = await startOwn('redis')
    server = servers.started[0] as StartedServer
    client = new Redis(server.url)
    client.on('error', () => {})
  })
  after(async () => {
    client.disconnect()
    await servers.stop()
  })
  afterEach(async () => {
    for (const end of ends.splice(0).toReversed()) await end()
  })

  function open(): { store: RedisStore; prefix: string; resets: StoreReset[] } {
    const prefix = `outage:${++prefixes}`
    const resets: StoreReset[] = []
    const store = redisStore(client, { prefix, buckets: 4, testClock: true, on: (event) => resets.push(event) })
    ends.push(() => store.stop())
    return { store, prefix, resets }
  }

  function ledgerOn(store: Store) {
    const events: LedgerEvent[] = []
    const once = createLedger({ store, background: false, on: (event) => events.push(event) })
    ends.push(() => once.stop())
    return { events, pay: once.operation({ name: 'pay', effect: 'repeatable', fingerprint: () => null }) }
  }

  async function fails(work: Promise<unknown>, applied: string): Promise<void> {
    await assert.rejects(work, (error) => isOnceError(error, 'store_unavailable') && error.applied === applied)
  }

  test('a paused server delays no caller beyond the deadline, and is used again when it resumes', async () => {
    const { store, resets } = open()
    await store.clock.now(CALL)
    await pause(server.pid)
    // It resumes only after all of them were answered.
    try {
      await fails(store.clock.now(SHORT), 'no')
      await fails(store.queries.count({}, SHORT), 'no')
      const release = { kind: 'forget', id: '0'.repeat(32), by: 'me', ifFence: null, onlyRunning: false } as const
      await assert.rejects(applyTo(store, release, SHORT), (error) => isOnceError(error, 'store_unavailable'))
    } finally {
      resume(server.pid)
    }
    await until('the server answers again', () => store.clock.now(CALL).catch(() => 0))
    assert.deepEqual(resets, [])
  })

  test('a server that is away is reported soon; after its restart everything acknowledged is there', async () => {
    const { store, resets } = open()
    const { pay } = ledgerOn(store)
    assert.equal(await pay.run(who('a'), null, () => 'once'), 'once')
    await server.halt()
    try {
      await fails(store.clock.now(FOR_EVER), 'no')
      await assert.rejects(
        pay.run(who('b'), null, () => 'never'),
        (error) => isOnceError(error, 'store_unavailable'),
      )
    } finally {
      await server.revive()
    }
    // The scripts are unknown to the new process.
    const again = await until('the server is back', () => pay.run(who('a'), null, () => 'twice').catch(() => ''))
    assert.equal(again, 'once')
    assert.deepEqual(resets, [], 'nothing was lost')
  })

  test('a server that became a replica is not held on to: a new connection may lead to its successor', async () => {
    const { store } = open()
    const { pay } = ledgerOn(store)
    assert.equal(await pay.run(who('a'), null, () => 'once'), 'once')
    const connections = async () => new Set(String(await client.call('CLIENT', 'LIST')).match(/(?<=^id=)\d+/gm))
    const before = await connections()
    // Nothing listens at that address: the server is a replica without a link, and keeps its connections.
    await client.call('REPLICAOF', '127.0.0.1', '1')
    try {
      await fails(store.clock.advance(1, CALL), 'no')
      // A ledger tries again, and a try of its may be lost with the connection that is given up.
      await assert.rejects(
        pay.run(who('b'), null, () => 'never'),
        (error) => isOnceError(error, 'store_unavailable'),
      )
      await until('there is a new connection', async () => [...(await connections())].some((id) => !before.has(id)))
    } finally {
      await client.call('REPLICAOF', 'NO', 'ONE')
    }
    const now = await until('it is a master again', () => pay.run(who('b'), null, () => 'now').catch(() => ''))
    assert.equal(now, 'now')
  })

  test('a restart in the middle of the load runs no effect twice', async () => {
    const { store } = open()
    const { pay } = ledgerOn(store)
    const runs = new Map<string, number>()
    let restarted = false
    const lane = async (first: number) => {
      for (let n = first; !restarted || n < first + 40; n += 16) {
        const key = `k${n}`
        await until(`${key} is answered`, () =>
          pay.run(who(key), null, () => runs.set(key, (runs.get(key) ?? 0) + 1).size).catch(() => 0),
        )
      }
    }
    const lanes = Array.from({ length: 16 }, (_, n) => lane(n))
    await until('the load is under way', () => runs.size > 100)
    await server.halt()
    await server.revive()
    restarted = true
    await Promise.all(lanes)
    assert.deepEqual([...runs.values()].filter((times) => times > 1).length, 0)
  })

  test('a flush in the middle of the work is reported, and what runs is recorded anew', async () => {
    const { store, resets } = open()
    const { pay, events } = ledgerOn(store)
    await pay.run(who('old'), null, () => 1)
    const value = await pay.run(who('running'), null, async () => {
      await client.flushall()
      return 'kept'
    })
    assert.equal(value, 'kept')
    assert.equal(await pay.run(who('running'), null, () => 'again'), 'kept', 'recorded by its settle')
    assert.ok(events.some(({ kind }) => kind === 'record_lost'))
    await store.queries.count({}, CALL)
    assert.deepEqual(
      resets.map(({ what }) => what),
      ['emptied', 'emptied', 'emptied', 'emptied'],
    )
  })

  test('a server that has forgotten the scripts has lost nothing, whatever runs meanwhile', async () => {
    const { store, resets } = open()
    const { pay } = ledgerOn(store)
    let over = false
    const claims = Array.from({ length: 8 }, async (_, caller) => {
      for (let n = 0; !over; n++) await pay.run(who(`${caller}:${n}`), null, () => n)
    })
    const reads = Array.from({ length: 8 }, async () => {
      while (!over) await store.clock.now(CALL)
    })
    for (let round = 0; round < 200; round++) await client.call('SCRIPT', 'FLUSH')
    over = true
    await Promise.all([...claims, ...reads])
    assert.deepEqual(resets, [])
  })

  test('a server that came back with an older state is reported', async () => {
    const { store, prefix, resets } = open()
    const { pay } = ledgerOn(store)
    for (let n = 0; n < 40; n++) await pay.run(who(`k${n}`), null, () => n)
    // As an older file, or a replica that lagged behind, would have it.
    const meta = `{${prefix}:2}:meta`
    const [epoch, , ...rest] = ((await client.get(meta)) ?? '').split(' ')
    await client.set(meta, [epoch, '16', ...rest].join(' '))
    await store.queries.count({}, CALL)
    assert.deepEqual(resets, [{ kind: 'store_reset', what: 'rolled_back', bucket: 2 }])
    await store.queries.count({}, CALL)
    assert.equal(resets.length, 1, 'once')
  })

  test('an older state is reported by the process that knew a newer one, also when another has used it since', async () => {
    const { store, prefix, resets } = open()
    const { pay } = ledgerOn(store)
    const older: string[] = []
    const metas = [0, 1, 2, 3].map((bucket) => `{${prefix}:${bucket}}:meta`)
    await pay.run(who('old'), null, () => 1)
    for (const meta of metas) older.push((await client.get(meta)) ?? '')
    for (let n = 0; n < 40; n++) await pay.run(who(`k${n}`), null, () => n)
    for (const [at, meta] of metas.entries()) await client.set(meta, older[at] ?? '')
    const otherResets: StoreReset[] = []
    const on = (event: StoreReset) => void otherResets.push(event)
    const other = redisStore(client, { prefix, buckets: 4, testClock: true, on })
    ends.push(() => other.stop())
    const { pay: payOther } = ledgerOn(other)
    for (let n = 0; n < 12; n++) await payOther.run(who(`other${n}`), null, () => n)
    await store.queries.count({}, CALL)
    assert.deepEqual(
      resets.map(({ what }) => what),
      Array(4).fill('rolled_back'),
    )
    assert.deepEqual(otherResets, [], 'it knew nothing of what was lost')
  })

  test('processes that disagree about the buckets do not begin', async () => {
    const { store, prefix } = open()
    await store.clock.now(CALL)
    const other = redisStore(client, { prefix, buckets: 8 })
    ends.push(() => other.stop())
    await assert.rejects(other.clock.now(CALL), (error) => isOnceError(error, 'bad_option'))
  })

  test('keys of another layout are refused by name before anything is written', async () => {
    const older = async (meta: string) => void (await client.hset(meta, 'epoch', '4:as-an-older-version-wrote-it:1'))
    const newer = async (meta: string) => void (await client.set(meta, 'layout-3:4:1 16 1 0 0'))
    for (const writeMeta of [older, newer]) {
      const { store, prefix } = open()
      await writeMeta(`{${prefix}:1}:meta`)
      const { pay } = ledgerOn(store)
      await assert.rejects(
        pay.run(who('a'), null, () => assert.fail('no effect')),
        (error) => isOnceError(error, 'schema_too_new'),
      )
      assert.deepEqual(await client.keys(`{${prefix}:*}:r:*`), [])
    }
  })

  test('what Redis removed by itself is gone from the indexes after a sweep, and a new life is not swept', async () => {
    const { store, prefix } = open()
    const { pay } = ledgerOn(store)
    for (const key of ['gone', 'again']) await pay.run(who(key), null, () => 1)
    for (const key of await client.keys(`{${prefix}:*}:r:*`)) {
      assert.ok((await client.pttl(key)) > 0, 'Redis knows the end, too')
      await client.del(key)
    }
    assert.equal((await store.queries.list({}, { limit: 10, cursor: null }, CALL)).rows.length, 0)
    assert.equal(await pay.run(who('again'), null, () => 2), 2)
    await store.clock.advance(8 * 24 * 3_600_000 - 60_000, CALL)
    const held = pay.run(who('again'), null, async () => {
      await store.upkeep.sweep(null, 100, CALL)
      return 3
    })
    assert.equal(await held, 3)
    const { rows } = await store.queries.list({}, { limit: 10, cursor: null }, CALL)
    assert.deepEqual(
      rows.map(({ record }) => record.identity.key),
      ['again'],
    )
    const sizeOf = async (index: string) => {
      const sizes = await Promise.all([0, 1, 2, 3].map((bucket) => client.zcard(`{${prefix}:${bucket}}:${index}`)))
      return sizes.reduce((sum, size) => sum + size)
    }
    const sizes = await Promise.all(['fences', 'open', 'unknowns'].map(sizeOf))
    assert.deepEqual(sizes, [1, 0, 0], 'one settled record, and nothing of the others')
  })

  test('a server that removes records when its memory is full is refused before anything is written', async () => {
    await client.config('SET', 'maxmemory-policy', 'volatile-lru')
    try {
      const { store, prefix } = open()
      const { pay } = ledgerOn(store)
      await assert.rejects(
        pay.run(who('a'), null, () => assert.fail('no effect')),
        (error) => isOnceError(error, 'bad_option') && /volatile-lru.*allowEviction/.test(error.message),
      )
      assert.deepEqual(await client.keys(`{${prefix}:*`), [])
      const allowed = redisStore(client, { prefix, buckets: 4, allowEviction: true })
      ends.push(() => allowed.stop())
      assert.equal(await ledgerOn(allowed).pay.run(who('a'), null, () => 1), 1)
      await client.config('SET', 'maxmemory-policy', 'noeviction')
      assert.equal(await pay.run(who('a'), null, () => 2), 1, 'the store looks again at its next use')
    } finally {
      await client.config('SET', 'maxmemory-policy', 'noeviction')
    }
  })

  test('settings that may lose records are named', async () => {
    const { store } = open()
    assert.deepEqual((await store.durability(CALL)).warnings, [])
    await client.config('SET', 'appendfsync', 'everysec')
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
    try {
      const { fsync, eviction, warnings } = await store.durability(CALL)
      assert.deepEqual([fsync, eviction, warnings.length], ['everysec', 'allkeys-lru', 2])
      const { risks } = await store.durability(CALL)
      assert.ok(risks.every(({ advice, verdict }) => advice !== '' && verdict === 'danger'))
    } finally {
      await client.config('SET', 'appendfsync', 'always')
      await client.config('SET', 'maxmemory-policy', 'noeviction')
    }
  })
})
