import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { after, before, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import type { LedgerRecord, Page, RecordView, Store } from 'onceonly'
import { createLedger, isOnceError } from 'onceonly'
import { redisStore } from 'onceonly/redis'
import { conformanceCases, runCase } from 'onceonly/testing'
import { swapScript } from '../../../../src/ledger/stores/redis/swap-script.ts'
import {
  ask,
  claim,
  granted,
  LEASE_MS,
  later,
  policies,
  RETAIN_MS,
  settle,
} from '../../../../src/testing/conformance/requests.ts'
import { until } from '../../../../src/testing/until.ts'

const url = process.env['ONCEONLY_TEST_REDIS_URL']
const HISTORIES = 4
const CALL = { timeoutMs: 60_000 }
const GRACE_MS = 5_000

/** Fences of one bucket differ by this. */
const FENCE_STEP = 16

/** A place of an index holds the ids that were granted together, one after the other; their fences follow on its score. */
function placesOf(scored: readonly string[]): { readonly id: string; readonly fence: number }[] {
  return scored.flatMap((ids, at) => {
    if (at % 2 === 1) return []
    const each = ids.match(/.{32}/g) ?? []
    return each.map((id, n) => ({ id, fence: Number(scored[at + 1]) + n * FENCE_STEP }))
  })
}

describe('the scripts', { skip: url === undefined && 'no Redis server' }, () => {
  let client: Redis
  let prefixes = 0
  before(() => {
    client = new Redis(url ?? '')
  })
  after(() => client.disconnect())

  const newPrefix = () => `equivalence:${process.pid}:${++prefixes}`

  const fencesOf = async (prefix: string) =>
    placesOf(await client.zrangebyscore(`{${prefix}:0}:fences`, '-inf', '+inf', 'WITHSCORES'))
  const scoreOf = async (prefix: string, index: string, id: string) => {
    const score = await client.zscore(`{${prefix}:0}:${index}`, id)
    return score === null ? null : Number(score)
  }

  async function checkIndexes(store: Store, prefix: string, id: string, record: LedgerRecord | null): Promise<void> {
    const standing = (await fencesOf(prefix)).filter((place) => place.id === id && place.fence === record?.fence)
    assert.equal(standing.length, record === null ? 0 : 1, 'one place by its fence')
    const unknown = record?.state === 'unknown' ? record.fence : null
    assert.equal(await scoreOf(prefix, 'unknowns', id), unknown, 'the unknowns')
    await store.queries.lapsed(0, 1, CALL)
    if (record?.state !== 'in_progress') return
    // A renewed lease stays where it was until that time, and moves then.
    const lookAt = await scoreOf(prefix, 'open', id)
    assert.ok(lookAt !== null && lookAt <= record.leaseUntil, 'its lease is looked at in time')
  }

  /** After every step, what is stored is what was answered, and every index leads to it. */
  function readingBack(store: Store, prefix: string): Store {
    const { claims } = store
    const apply: typeof claims.apply = async (request, call) => {
      const applied = await claims.apply(request, call)
      const { records } = await claims.read([request.id], CALL)
      assert.deepEqual(records[0], applied.record, `after ${request.kind}`)
      await checkIndexes(store, prefix, request.id, applied.record)
      return applied
    }
    return { ...store, claims: { ...claims, apply } }
  }

  test('write the record that they answer, and keep the indexes in step with it', async () => {
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

  /** Records that were claimed at once, so that some of them share a place of the index. */
  async function crowd(t: TestContext, keys: readonly string[]) {
    const prefix = newPrefix()
    const store = redisStore(client, { prefix, buckets: 1, testClock: true })
    const once = createLedger({ store, background: false })
    t.after(async () => {
      await once.stop()
      await store.stop()
    })
    const pay = once.operation({ name: 'pay', effect: 'repeatable', retainMs: 60_000 })
    const run = (key: string, value: number) => pay.run({ tenant: 'acme', caller: 'ann', key }, null, () => value)
    await Promise.all(keys.map((key) => run(key, 1)))
    const sizes = async () => [(await fencesOf(prefix)).length, await client.zcard(`{${prefix}:0}:fences`)] as const
    const [ids, places] = await sizes()
    assert.equal(ids, keys.length)
    assert.ok(places < ids, 'some share a place')
    return { store, run, sizes }
  }

  const NINE = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i']

  test('sweep a place that several records share, but none of them that has a new life', async (t) => {
    const { store, run, sizes } = await crowd(t, NINE)
    await store.clock.advance(60_000, CALL)
    assert.equal(await run('h', 2), 2)
    assert.deepEqual(await store.upkeep.sweep(null, 100, CALL), { cursor: null, looked: 9, removed: 8 })
    assert.deepEqual(await sizes(), [1, 1])
    assert.equal(await run('h', 3), 2, 'the new life is whole')
    await store.clock.advance(60_000, CALL)
    assert.deepEqual(await store.upkeep.sweep(null, 100, CALL), { cursor: null, looked: 1, removed: 1 })
    assert.deepEqual(await sizes(), [0, 0])
  })

  test('sweep and list a place in steps that are smaller than it', async (t) => {
    const { store, run, sizes } = await crowd(t, NINE)
    const listed = async () => {
      const keys: string[] = []
      for (let cursor: string | null = null, page = 0; page === 0 || cursor !== null; page++) {
        const { rows, cursor: next }: Page<RecordView> = await store.queries.list({}, { limit: 2, cursor }, CALL)
        keys.push(...rows.map(({ record }) => record.identity.key))
        cursor = next
      }
      return keys.toSorted()
    }
    assert.deepEqual(await listed(), NINE, 'each once')
    await store.clock.advance(60_000, CALL)
    assert.equal(await run('h', 2), 2)
    assert.deepEqual(await listed(), ['h'], 'not in the place of its first life as well')
    let removed = 0
    for (let cursor: string | null = null, step = 0; step === 0 || cursor !== null; step++) {
      const swept = await store.upkeep.sweep(cursor, 2, CALL)
      assert.ok(swept.looked <= 2, 'a step keeps its limit')
      removed += swept.removed
      cursor = swept.cursor
    }
    assert.equal(removed, 8)
    assert.deepEqual(await sizes(), [1, 1], 'places without a record are gone')
    await assert.rejects(store.upkeep.sweep('not ours', 1, CALL), (error) => isOnceError(error, 'bad_option'))
  })

  test('keep a place in which a record still stands, also where a step of the sweep began behind it', async (t) => {
    const prefix = newPrefix()
    const store = redisStore(client, { prefix, buckets: 1, testClock: true })
    t.after(() => store.stop())
    const grants = await Promise.all(NINE.map((key) => granted(store, claim(key))))
    const places = await client.zrangebyscore(`{${prefix}:0}:fences`, '-inf', '+inf')
    const running = places.find((ids) => ids.length > 32)?.slice(0, 32)
    assert.ok(running !== undefined, 'some share a place')
    for (const grant of grants) if (grant.id !== running) await ask(store, settle(grant))
    await store.clock.advance(RETAIN_MS, CALL)
    let cursor: string | null = null
    do ({ cursor } = await store.upkeep.sweep(cursor, 2, CALL))
    while (cursor !== null)
    const { rows } = await store.queries.list({}, { limit: 9, cursor: null }, CALL)
    assert.deepEqual(
      rows.map(({ record }) => record.id),
      [running],
    )
  })

  test('find lapsed leases behind many, not before the end of a renewed one, and forget what was settled', async (t) => {
    const store = redisStore(client, { prefix: newPrefix(), buckets: 1, testClock: true })
    t.after(() => store.stop())
    const lapsed = async () => (await store.queries.lapsed(0, 5_000, CALL)).rows.map(({ id }) => id)
    const claimed = await Promise.all(Array.from({ length: 1_100 }, (_, n) => granted(store, claim(`k${n}`))))
    const [settled, renewed, ...rest] = claimed
    assert.ok(settled !== undefined && renewed !== undefined)
    assert.deepEqual(await lapsed(), [])
    await ask(store, settle(settled))
    await store.clock.advance(LEASE_MS - 1_000, CALL)
    const { id, claimId, fence } = renewed
    await ask(store, { kind: 'renew', id, claimId, fence, leaseMs: LEASE_MS })
    await store.clock.advance(GRACE_MS + 1_000, CALL)
    const found = await lapsed()
    assert.deepEqual(found.toSorted(), rest.map((grant) => grant.id).toSorted())
    await store.clock.advance(LEASE_MS, CALL)
    assert.equal((await lapsed()).length, rest.length + 1)
    const more = await Promise.all(Array.from({ length: 1_100 }, (_, n) => granted(store, claim(`more${n}`))))
    await store.clock.advance(LEASE_MS + GRACE_MS, CALL)
    assert.equal((await lapsed()).length, rest.length + 1 + more.length, 'all that is new, by one search')
  })

  test('find the lapsed lease of an attempt whose fence is older than what a search has seen', async (t) => {
    const prefix = newPrefix()
    const [one, other] = [1, 2].map(() => redisStore(client, { prefix, buckets: 1, testClock: true }))
    assert.ok(one !== undefined && other !== undefined)
    const gate = Promise.withResolvers<void>()
    const held = Promise.withResolvers<void>()
    const { call } = Redis.prototype
    t.after(async () => {
      gate.resolve()
      Redis.prototype.call = call
      for (const store of [one, other]) await store.stop()
    })
    await ask(one, settle(await granted(one, claim('a', { policy: policies.rerun })), later(0)))
    // The second attempt is decided, with a fence, and written only when another process has claimed and searched.
    Redis.prototype.call = async function (this: Redis, ...words: Parameters<typeof call>) {
      if ([words[1]].flat()[0] === swapScript.sha) {
        held.resolve()
        await gate.promise
      }
      return await Reflect.apply(call, this, words)
    } as typeof call
    const again = granted(one, claim('a', { policy: policies.rerun }))
    await held.promise
    const newer = await granted(other, claim('b'))
    assert.deepEqual((await other.queries.lapsed(0, 9, CALL)).rows, [])
    gate.resolve()
    const older = await again
    assert.ok(older.fence < newer.fence)
    await other.clock.advance(LEASE_MS + GRACE_MS, CALL)
    assert.deepEqual(
      (await other.queries.lapsed(0, 9, CALL)).rows.map(({ id }) => id),
      [older.id, newer.id],
    )
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
