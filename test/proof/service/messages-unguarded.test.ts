import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client } from 'pg'
import { until } from '../../../src/testing/until.ts'
import { openCluster } from '../../support/service/cluster.ts'

const skip = process.env['ONCEONLY_TEST_POSTGRES_URL'] === undefined ? 'no PostgreSQL server' : false

test('a retry whose lock cannot be asked meets the original that its own database knows', { skip }, async () => {
  await using cluster = await openCluster('postgres')
  const [server] = cluster.servers
  assert.ok(server !== undefined)
  const body = { channel: 'local', recipientEmail: 'ann@example.com', message: 'once' }
  const first = await server.send(body)
  assert.equal(first.status, 201, first.text)

  // The records are locked for longer than the guard waits; everything else in the database works.
  const session = new Client({ connectionString: cluster.address })
  await session.connect()
  await session.query('begin; lock table onceonly_records in access exclusive mode')
  const asked = server.send(body)
  try {
    await until('the guard gives up', () => server.events('message.api.duplicate_guard_error').length > 0)
  } finally {
    await session.end()
  }

  const again = await asked
  assert.equal(again.body.duplicateOnly, true, again.text)
  assert.equal(again.body.message?._id, first.body.message?._id)
  const [row] = await cluster.sql<{ n: unknown }>(`select count(*) as n from messages where body = 'once'`)
  assert.equal(Number(row?.n), 1)
})
