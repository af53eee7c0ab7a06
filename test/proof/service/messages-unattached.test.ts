import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { startOwn } from '../../support/own-server.ts'
import { pause, resume } from '../../support/pause.ts'
import { holdTable, whenHeld } from '../../support/service/break.ts'
import { openCluster } from '../../support/service/cluster.ts'

const skip = process.env['ONCEONLY_TEST_POSTGRES_URL'] === undefined ? 'no PostgreSQL server' : false

test('a key whose store was silent when its message was attached still answers with that message', {
  skip,
}, async () => {
  await using servers = await startOwn('redis')
  const [redis] = servers.started
  assert.ok(redis !== undefined)
  await using cluster = await openCluster('postgres', { env: { ONCEONLY_CLAIMS: redis.url } })
  const [server] = cluster.servers
  assert.ok(server !== undefined)
  const body = { channel: 'local', recipientEmail: 'ann@example.com', message: 'unattached' }
  const ask = () => server.send(body, { key: 'unattached' })

  // The key and the lock are granted; their store stops responding while the message is being written.
  const letGo = await holdTable(cluster, 'postgres', 'messages', "new.body = 'unattached'")
  const asked = ask()
  await whenHeld(cluster, 'postgres')
  await pause(redis.pid)
  try {
    await letGo()
    const failed = () => server.events('message.attach_failed').length === 2
    await until('the message could be attached neither to the key nor to the lock', failed)
  } finally {
    resume(redis.pid)
  }

  const first = await asked
  assert.equal(first.status, 201, first.text)
  const again = await until('the key has its record', ask, ({ body: answer }) => answer.retryable !== true)
  assert.equal(again.status, 201, again.text)
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
  assert.equal(again.body.message?._id, first.body.message?._id)
})
