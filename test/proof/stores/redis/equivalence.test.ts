import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import type { LedgerRecord, Store } from 'onceonly'
import { createLedger } from 'onceonly'
import { redisStore } from 'onceonly/redis'
import { conformanceCases, runCase } from 'onceonly/testing'
import { until } from '../../../../src/testing/until.ts'

const url = process.env['ONCEONLY_TEST_REDIS_URL']
const HISTORIES = 4
const CALL = { timeoutMs: 60_000 }
const GRACE_MS = 5_000

/** Where a record must stand in each index, by which score. */
function placesOf(record: LedgerRecord | null): (number | null)[] {
  if (record === null) return [null, null, null, null]
  // What the sweep has emptied already waits for its end only.
  const settled = record.state === 'succeeded' || record.state === 'failed_terminal'
  const replayable = settled && record.outcome.data !== null
  const goneAt = 'goneAt' in record ? record.goneAt : null
  return [
    record.fence,
    record.state === 'in_progress' ? record.leaseUntil : null,
    record.state === 'unknown' ? record.fence : null,
    replayable ? record.expiresAt : goneAt,
  ]
}

/** A place in the index of ends holds the ids of all that end at the same time, one after the other. */
const idsIn = (place: string): string[] => place.match(/.{32}/g) ?? []

describe('the scripts', { skip: url === undefined && 'no Redis server' }, () => {
  let client: Redis
  let prefixes = 0
  before(() => {
    client = new Redis(url ?? '')
  })
  after(() => client.disconnect())

  const newPrefix = () => `equivalence:${process.pid}:${++prefixes}`

  async function indexed(prefix: string, id: string, end: number | null): Promise<(number | null)[]> {
    const tag = `{${prefix}:0}`
    const scores = ['fences', 'open', 'unknowns'].map((index) => client.zscore(`${tag}:${index}`, id))
    const places = (await Promise.all(scores)).map((score) => (score === null ? null : Number(score)))
    // Ends are shared, and those of an earlier life stay until the sweep comes by.
    const sharing = end === null ? [] : await client.zrangebyscore(`${tag}:ends`, end, end)
    return [...places, sharing.some((ids) => idsIn(ids).includes(id)) ? end : null]
  }

  /** After every step, what is stored is what was answered, and every index leads to it. */
  function readingBack(store: Store, prefix: string): Store {
    const { claims } = store
    const apply: typeof claims.apply = async (request, call) => {
      const applied = await claims.apply(request, call)
      const { records } = await claims.read([request.id], CALL)
      assert.deepEqual(records[0], applied.record, `after ${request.kind}`)
      const places = placesOf(applied.record)
      assert.deepEqual(await indexed(prefix, request.id, places[3] ?? null), places, 'the indexes')
      return applied
    }
    return { ...store, claims: { ...claims, apply } }
  }

  test('write what they answer, and keep the indexes in step', async () => {
    const histories = conformanceCases({ histories: HISTORIES }).filter(({ name }) => name.includes('random history'))
    assert.equal(histories.length, HISTORIES)
    for (const each of histories) {
      await runCase(each, async () => {
        const prefix = newPrefix()
        const store = redisStore(client, { prefix, buckets: 1, testClock: true })
        return { store: readingBack(store, prefix), close: () => store.stop() }
      })
    }
  })

  test('sweep an end that several records share, but none of them that has a new life', async () => {
    const prefix = newPrefix()
    const store = redisStore(client, { prefix, buckets: 1, testClock: true })
    const once = createLedger({ store, background: false })
    const pay = once.operation({ name: 'pay', effect: 'repeatable', retainMs: 60_000 })
    const run = (key: string, value: number) => pay.run({ tenant: 'acme', caller: 'ann', key }, null, () => value)
    const sizes = () => Promise.all(['fences', 'ends'].map((index) => client.zcard(`{${prefix}:0}:${index}`)))
    try {
      await Promise.all(['a', 'b', 'c'].map((key) => run(key, 1)))
      assert.deepEqual(await sizes(), [3, 1], 'three records, and one place for their end')
      await store.clock.advance(60_000, CALL)
      assert.equal(await run('b', 2), 2)
      assert.deepEqual(await store.upkeep.sweep(null, 100, CALL), { cursor: null, looked: 3, removed: 2 })
      assert.deepEqual(await sizes(), [1, 1])
      assert.equal(await run('b', 3), 2, 'the new life is whole')
      await store.clock.advance(60_000, CALL)
      assert.deepEqual(await store.upkeep.sweep(null, 100, CALL), { cursor: null, looked: 1, removed: 1 })
      assert.deepEqual(await sizes(), [0, 0])
    } finally {
      await once.stop()
      await store.stop()
    }
  })

  test('wake waiting callers, whichever way a record is changed; a lease lapses after its grace', async () => {
    const store = redisStore(client, { prefix: newPrefix(), testClock: true })
    const once = createLedger({ store, background: false })
    const pay = once.operation({ name: 'pay', effect: 'external', leaseMs: 10_000 })
    let woken = 0
    const watch = store.claims.watch(() => void woken++)
    try {
      await watch.ready
      const parts = { tenant: 'acme', caller: 'ann', key: 'k' }
      const held = await pay.claim(parts, null)
      assert.equal(held.kind, 'first_attempt')
      const waiting = pay.claim(parts, null, { waitMs: 60_000 })
      const { id } = (await once.list({})).rows[0]?.record ?? { id: '' }
      await until('it waits', async () => (await store.claims.read([id], CALL)).records[0]?.awaited === true)
      // Not long past its end, so that the grace is more than a busy machine takes to look.
      await store.clock.advance(10_000 + 100, CALL)
      assert.equal((await store.queries.lapsed(0, 10, CALL)).rows.length, 0, 'within the grace')
      await store.clock.advance(GRACE_MS, CALL)
      assert.equal((await store.queries.lapsed(0, 10, CALL)).rows.length, 1)
      await once.upkeep.reconcile()
      assert.equal((await waiting).kind, 'outcome_unknown')
      await until('waiting callers are woken', () => woken > 0)
    } finally {
      watch.stop()
      await once.stop()
      await store.stop()
    }
  })
})
