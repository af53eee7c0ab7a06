import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { MINUTE } from 'onceonly'
import { until } from '../../../src/testing/until.ts'
import type { Servers, StartedServer } from '../../../tools/servers/index.ts'
import { startOwn } from '../../support/own-server.ts'
import { type Cluster, openCluster, type TestServer } from '../../support/service/cluster.ts'

/** More failures than the breaker of the guard needs to open: a send then never requests a lock, not even late. */
const FAILURES = 7

/** Originals that went out while the locks were away: only the database knows them. */
describe('messages that were sent without their lock', () => {
  let servers: Servers
  let redis: StartedServer
  let cluster: Cluster
  let one: TestServer
  let sent = 0

  before(async () => {
    servers = await startOwn('redis')
    redis = servers.started[0] as StartedServer
    cluster = await openCluster('sqlite', { env: { ONCEONLY_CLAIMS: redis.url } })
    one = cluster.servers[0] as TestServer
  })
  after(async () => {
    await cluster[Symbol.asyncDispose]()
    await servers.stop()
  })

  const fresh = () => ({ recipientEmail: 'ann@example.com', message: `Text ${++sent}` })
  const advance = (ms: number) => one.admin('PUT', '/test-clock', { advanceMs: ms })
  const hashOf = async (message: string) => {
    const [row] = await cluster.sql<{ lock_hash: string }>(`select lock_hash from messages where body = '${message}'`)
    return row?.lock_hash ?? ''
  }

  async function sentWithoutLock() {
    await redis.halt()
    const body = fresh()
    try {
      for (let count = 0; count < FAILURES; count++) await one.send(fresh())
      assert.equal((await one.send(body)).body.status, 'sent')
    } finally {
      await redis.revive()
    }
    await until('the locks work again', async () => {
      const probe = fresh()
      await one.send(probe)
      const { status } = await one.admin('GET', `/guard/locks/${await hashOf(probe.message)}`)
      return status === 200
    })
    return body
  }

  test('their window is not begun anew by a duplicate', async () => {
    const body = await sentWithoutLock()
    await advance(14 * MINUTE)
    const within = await one.send(body)
    assert.equal(within.body.duplicateOnly, true, within.text)
    await advance(2 * MINUTE)
    const past = await one.send(body)
    assert.deepEqual([past.body.duplicateOnly, past.body.status], [undefined, 'sent'], past.text)
  })

  test('after an operator releases its lock, a content is sent again', async () => {
    const body = await sentWithoutLock()
    assert.equal((await one.send(body)).body.duplicateOnly, true)
    const hash = await hashOf(body.message)
    assert.equal((await one.admin('DELETE', `/guard/locks/${hash}`)).status, 204)
    const again = await one.send(body)
    assert.deepEqual([again.body.duplicateOnly, again.body.status], [undefined, 'sent'], again.text)
    assert.equal((await one.send(body)).body.duplicateOnly, true, 'guarded as ever')
    assert.equal((await one.admin('DELETE', `/guard/locks/${'0'.repeat(64)}`)).status, 404)
  })
})
