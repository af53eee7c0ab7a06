import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  type Cluster,
  makeWorkspace,
  onEveryPlace,
  openCluster,
  type TestServer,
} from '../../../support/service/cluster.ts'

const bytes = (n: number) => ({
  filename: 'a.txt',
  contentType: 'text/plain',
  base64: Buffer.alloc(n).toString('base64'),
})

onEveryPlace('the quota of messages', (place) => {
  let cluster: Cluster
  let one: TestServer
  let two: TestServer
  before(async () => {
    const env = { ONCEONLY_QUOTA_MESSAGES: '5', ONCEONLY_QUOTA_MESSAGE_BYTES: '100000' }
    cluster = await openCluster(place, { processes: 2, env })
    ;[one, two] = cluster.servers as [TestServer, TestServer]
  })
  after(() => cluster[Symbol.asyncDispose]())

  const used = async (workspace: string) => {
    const rows = await cluster.sql<{ quota: string; used: unknown }>(
      `select quota, sum(used) as used from workspace_usage where workspace_id = '${workspace}' group by quota`,
    )
    return Object.fromEntries(rows.map((row) => [row.quota, Number(row.used)]))
  }

  test('is one for all processes; retries and duplicates of what was accepted are still answered', async () => {
    const apiKey = await makeWorkspace(one, 'full')
    const other = await makeWorkspace(one, 'other')
    const body = (n: number) => ({ recipientPhone: '+4930222', message: `number ${n}` })
    for (const n of [1, 2, 3, 4]) {
      assert.equal((await [one, two][n % 2]?.send(body(n), { apiKey }))?.status, n === 1 ? 201 : 200)
    }
    const keyed = await one.send(body(5), { apiKey, key: 'k-5' })
    assert.equal(keyed.status, 200)
    for (const server of [one, two]) {
      const refused = await server.send(body(6), { apiKey, key: 'k-6' })
      assert.deepEqual(
        [refused.status, refused.body.type, refused.body.retryable],
        [403, '/problems/quota-exceeded', false],
      )
      assert.deepEqual(refused.body['quota'], { name: 'messages', limit: 5, used: 5 })
      assert.match(String(refused.body['detail']), /keeps 5 of 5 messages, and this needs 1 more. Nothing was done/)
      const retried = await server.send(body(5), { apiKey, key: 'k-5' })
      assert.deepEqual([retried.status, retried.body.message?._id], [200, keyed.body.message?._id])
      const duplicate = await server.send(body(4), { apiKey })
      assert.deepEqual([duplicate.status, duplicate.body.duplicateOnly], [200, true])
    }
    assert.equal((await one.send(body(6), { apiKey: other })).status, 201)
    const items = [{ itemKey: 'i', ...body(7) }]
    const batch = await two.post('/api/messages:batchSend', { batchId: 'b', items }, { apiKey })
    assert.match(batch.text, /"errorCode":"QUOTA_EXCEEDED"/)
    // A refused message leaves neither rows nor a lock: where there is room again, it goes out under the same key.
    await cluster.sql(`delete from messages where id = '${keyed.body.message?._id}'`)
    assert.equal((await two.send(body(6), { apiKey, key: 'k-6' })).status, 200)
    assert.equal((await used('full'))['messages'], 5)
  })

  test('counts bytes, and gives those of attachments back once they were sent', async () => {
    const apiKey = await makeWorkspace(one, 'large')
    const send = (message: string, n: number) =>
      one.send({ recipientEmail: 'a@example.com', message, attachments: [bytes(n)] }, { apiKey })
    const refused = await send('too large', 90_000)
    assert.deepEqual([refused.status, refused.body['quota']], [403, { name: 'message-bytes', limit: 100_000, used: 0 }])
    for (const text of ['one', 'two', 'six']) assert.ok((await send(text, 60_000)).status < 202, text)
    assert.deepEqual(await used('large'), { messages: 3, 'message-bytes': 9 })
  })
})
