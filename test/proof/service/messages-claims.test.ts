import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { createLedger } from 'onceonly'
import { redisStore } from 'onceonly/redis'
import { until } from '../../../src/testing/until.ts'
import type { Servers, StartedServer } from '../../../tools/servers/index.ts'
import { startOwn } from '../../support/own-server.ts'
import { pause, resume } from '../../support/pause.ts'
import { type Cluster, openCluster, type TestServer } from '../../support/service/cluster.ts'

/** The guard's deadline is 250 ms; the rest is a busy machine. */
const SLOW_MS = 8_000
const viewerToken = 'viewer-token-of-tests'
const ERROR = 'message.api.duplicate_guard_error'

/** Keys and locks in Redis, and Redis in trouble (G10). */
describe('messages with their claims in Redis', () => {
  let servers: Servers
  let redis: StartedServer
  let cluster: Cluster
  let open: TestServer
  let closed: TestServer
  let sent = 0

  before(async () => {
    servers = await startOwn('redis')
    redis = servers.started[0] as StartedServer
    const env = { ONCEONLY_CLAIMS: redis.url, ONCEONLY_VIEWER_TOKEN: viewerToken }
    cluster = await openCluster('sqlite', { processes: 0, env })
    ;[open, closed] = await Promise.all([cluster.add(), cluster.add({ ONCEONLY_GUARD_FAILS: 'closed' })])
  })
  after(async () => {
    await cluster[Symbol.asyncDispose]()
    await servers.stop()
  })

  const fresh = () => ({ recipientEmail: 'ann@example.com', message: `Text ${++sent}` })

  /** What must hold whenever the locks cannot be asked: they come back only after all of it. Few enough that the breaker stays closed. */
  async function unguarded(): Promise<void> {
    const before = open.events(ERROR).length
    const body = fresh()
    const refusing = closed.send(fresh())
    const keying = open.send(fresh(), { key: `key-${sent}` })
    for (const duplicateOnly of [undefined, true]) {
      const { status, body: answer } = await open.send(body)
      assert.ok(status === 200 || status === 201, `sent, not ${status}`)
      assert.equal(answer.duplicateOnly, duplicateOnly, 'the database still knows what was sent')
    }
    await until('both are logged', async () => open.events(ERROR).length === before + 2)
    assert.equal((await refusing).status, 503, 'fails closed where configured to')
    const keyed = await keying
    assert.equal(keyed.status, 503, 'a key is never ignored')
    assert.ok(keyed.headers.get('retry-after') !== null)
  }

  async function guardedAgain(): Promise<void> {
    const body = fresh()
    await until('the guard works again', async () => {
      await open.send(body)
      return (await open.send(body)).body.duplicateOnly === true
    })
    // Every process finds its own way back to Redis; until it has, this one sends nothing.
    await until('across processes', async () => {
      const { status, body: answer } = await closed.send(body)
      assert.ok(answer.duplicateOnly === true || status === 503, `guarded or refused, not ${status}`)
      return answer.duplicateOnly === true
    })
  }

  test('keys replay, content is guarded over processes, and both are in Redis', async () => {
    await guardedAgain()
    const body = fresh()
    const first = await open.send(body, { key: 'kept' })
    const again = await closed.send(body, { key: 'kept' })
    assert.deepEqual([first.status, again.text], [again.status, first.text])
    assert.equal(again.headers.get('idempotent-replayed'), 'true')
    const [counted] = await cluster.sql<{ count: number }>(
      "select count(*) as count from onceonly_records where operation <> 'messages.deliver'",
    )
    assert.equal(Number(counted?.count), 0, 'neither key nor lock is in the store of the messages')
    const client = new Redis(redis.url)
    assert.ok((await client.keys('{onceonly:*}:r:*')).length > 1)
    client.disconnect()
    assert.equal((await open.admin('PUT', '/test-clock', { advanceMs: 16 * 60_000 })).status, 200)
    assert.equal((await open.send(body)).body.duplicateOnly, undefined, 'the window is over, by the moved clock')
  })

  test('an unknown outcome in Redis is among the numbers', async () => {
    const store = redisStore(new Redis(redis.url, { lazyConnect: true }))
    const ledger = createLedger({ store, background: false })
    const charge = ledger.operation({ name: 'charge', effect: 'external' })
    const identity = { tenant: 'acme', caller: 'ann', key: 'broken' }
    await assert.rejects(charge.run(identity, null, () => Promise.reject(new Error('The line broke.'))))
    await ledger.stop()
    await store.stop()
    const headers = { authorization: `Bearer ${viewerToken}` }
    const text = await (await fetch(`${open.url}/metrics`, { headers })).text()
    for (const line of ['onceonly_store_up 1', 'onceonly_claims_up 1', 'onceonly_dedup_unknown_waiting 1'])
      assert.match(text, RegExp(`^${line}$`, 'm'))
  })

  test('with Redis stopped', async () => {
    await redis.halt()
    try {
      await unguarded()
      for (const path of ['/doctor', '/status']) {
        const { status, text } = await open.console(path)
        assert.deepEqual([status, text.includes('the store of the claims does not answer')], [200, true], text)
      }
    } finally {
      await redis.revive()
    }
    await guardedAgain()
  })

  test('with Redis paused', async () => {
    await pause(redis.pid)
    try {
      await unguarded()
    } finally {
      resume(redis.pid)
    }
    await guardedAgain()
  })

  test('with Redis slower than the deadline', async () => {
    const client = new Redis(redis.url)
    await client.call('CLIENT', 'PAUSE', SLOW_MS, 'ALL')
    let answered = false
    const slow = client.ping().then(() => void (answered = true))
    assert.ok((await open.send(fresh())).status <= 201)
    assert.equal(answered, false, 'the guard did not wait for Redis')
    await slow
    client.disconnect()
    await guardedAgain()
  })
})
