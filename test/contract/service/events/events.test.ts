import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../../../src/testing/until.ts'
import { openCluster, type TestServer } from '../../../support/service/cluster.ts'

/** A port without a listener. */
const AWAY = ['amqp://127.0.0.1:1', 'nats://127.0.0.1:1']

for (const url of AWAY) {
  test(`a broker that is away (${url.slice(0, 4)}) delays neither a request nor the stop of the server`, async () => {
    await using cluster = await openCluster('sqlite', { env: { ONCEONLY_BROKER: url } })
    const [server] = cluster.servers as [TestServer]
    const body = { caseId: 'CASE-100', targetQueue: 'BILLING', reason: null }
    assert.equal((await server.post('/case-escalations', body, { key: 'away' })).status, 201)
    // The broker never answers: a server that waited for it would not stop at all.
    await server.stop()
    // Its event waits in the store, and a server with a broker publishes it.
    await cluster.add({ ONCEONLY_BROKER: '' })
    await until(
      'its event is published',
      async () => (await cluster.sql('select 1 from escalation_notices')).length === 1,
    )
  })
}
