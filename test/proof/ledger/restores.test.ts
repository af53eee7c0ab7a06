import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import type { Store } from 'onceonly'
import { createLedger, isOnceError } from 'onceonly'
import type { Subject } from 'onceonly/testing'
import { createAdmin } from '../../../src/admin/core/admin.ts'
import type { Keys } from '../../contract/stores/subjects.ts'
import { postgresSubjects, redisSubjects, sqliteSubject } from '../../contract/stores/subjects.ts'

import { openSubject } from '../../support/stores/mariadb/subject.ts'

/** A backup came back: fences stay above all that were granted, and keys of the time that is gone are refused. */

const CALL = { timeoutMs: 60_000 }
const MINUTE = 60_000
const who = (key: string) => ({ tenant: 'acme', caller: 'web', key })

let keys = 0

/** A UUIDv7 of a time. */
function keyOf(atMs: number): string {
  const time = Math.floor(atMs).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${(++keys).toString(16).padStart(12, '0')}`
}

function operationsOn(store: Store) {
  const once = createLedger({ store, background: false })
  const fences: number[] = []
  const fingerprint = () => null
  const charge = once.operation<null>({ name: 'charge', effect: 'external', fingerprint })
  const index = once.operation<null>({ name: 'index', effect: 'repeatable', fingerprint })
  const run = (operation: typeof charge, key: string) =>
    operation.run(who(key), null, ({ fence }) => {
      fences.push(fence)
      return 'done'
    })
  return {
    once,
    fences,
    charge: (key: string) => run(charge, key),
    index: (key: string) => run(index, key),
    stop: () => once.stop(),
  }
}

function proves(name: string, open: (() => Promise<Subject>) | null): void {
  test(`${name}: after a restore`, { skip: open === null ? 'no server' : false }, async (t) => {
    const subject = await (open as () => Promise<Subject>)()
    t.after(() => subject.close())
    const before = operationsOn(subject.store)
    const now = await subject.store.clock.now(CALL)
    const known = keyOf(now - 2 * MINUTE)
    assert.equal(await before.charge(known), 'done')
    await before.charge('order-4711')

    const admin = createAdmin({ store: subject.store, ledger: before.once })
    const { from, to, fence, newestBefore, risks } = await admin.restored(now - 5 * MINUTE)
    assert.equal(from, now - 5 * MINUTE)
    assert.ok(to >= now && newestBefore >= Math.max(...before.fences) && fence > newestBefore)
    assert.deepEqual(risks, [{ operation: 'charge', keys: 2, undated: 1 }])

    // A server that starts afterwards.
    const store = subject.another === undefined ? subject.store : await subject.another()
    const next = operationsOn(store)
    assert.equal(await next.charge(known), 'done', 'what is recorded is answered')
    assert.deepEqual(next.fences, [], 'without a second effect')
    for (const lost of [keyOf(from), keyOf(now - MINUTE), keyOf(to)]) {
      await assert.rejects(next.charge(lost), (error) => isOnceError(error, 'key_expired'))
    }
    assert.deepEqual(next.fences, [], 'nothing ran under a key of the time that is gone')
    await next.charge(keyOf(from - 1))
    await next.charge(keyOf(to + 1))
    await next.charge('order-4712')
    await next.index(keyOf(now - MINUTE))
    assert.equal(next.fences.length, 4)
    if (subject.another !== undefined) assert.ok(Math.min(...next.fences) > fence, `${next.fences} after ${fence}`)

    await store.upkeep.sweep(null, 100, CALL)
    const { rows } = await store.queries.list({ ended: true }, { limit: 100, cursor: null }, CALL)
    assert.ok(rows.every(({ record }) => ['charge', 'index'].includes(record.identity.operation)))
    assert.deepEqual(await store.restores?.list(CALL), [{ from, to }])
    await assert.rejects(admin.restored(to + 10 * MINUTE), (error) => isOnceError(error, 'bad_option'))
    for (const each of [before, next]) await each.stop()
  })
}

const encryption: Keys = { encryption: { keys: { one: randomBytes(32) } } }
const { ONCEONLY_TEST_POSTGRES_URL: postgres, ONCEONLY_TEST_REDIS_URL: redis } = process.env
const mariadb = process.env['ONCEONLY_TEST_MARIADB_URL']
const onPostgres = postgres === undefined ? null : await postgresSubjects(postgres)
const onRedis = redis === undefined ? null : redisSubjects(redis)
after(async () => {
  await onPostgres?.end()
  await onRedis?.end()
})

proves('sqlite', () => sqliteSubject())
proves('sqlite, encrypted', () => sqliteSubject(encryption))
proves('postgres', onPostgres?.open ?? null)
proves('redis', onRedis?.open ?? null)
proves('mariadb', mariadb === undefined ? null : () => openSubject(mariadb))
