import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openCluster, type TestServer } from '../../support/service/cluster.ts'

test('a lock that an operator forgets lets the text go out again, also where the first one went out without it', async () => {
  await using cluster = await openCluster('sqlite')
  const [server] = cluster.servers as readonly [TestServer]
  const send = async () => (await server.send({ recipientPhone: '+493044', message: 'Hello' })).body.message?._id
  const original = await send()
  // As if its lock had been granted only after it was sent.
  await cluster.sql('update message_originals set lock_claim = null')
  assert.equal(await send(), original)
  const { rows } = (await server.console('/guard')).body as unknown as { rows: readonly { id: string }[] }
  const forgotten = await server.asOperator('POST', '/api/console/actions', { action: 'forget', id: rows[0]?.id })
  assert.equal(forgotten.status, 200, forgotten.text)
  assert.notEqual(await send(), original)
})
