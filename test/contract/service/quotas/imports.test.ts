import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { json } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { until } from '../../../../src/testing/until.ts'
import {
  type Cluster,
  makeWorkspace,
  onEveryPlace,
  openCluster,
  type TestServer,
} from '../../../support/service/cluster.ts'
import { upload } from '../../../support/service/imports/upload.ts'

onEveryPlace('the quotas of imports', (place) => {
  let cluster: Cluster
  let one: TestServer
  let two: TestServer
  before(async () => {
    const env = {
      ONCEONLY_QUOTA_IMPORTS: '3',
      ONCEONLY_QUOTA_UPLOAD_BYTES: '3000000',
      ONCEONLY_QUOTA_UPLOADS: '1',
    }
    cluster = await openCluster(place, { processes: 2, env })
    ;[one, two] = cluster.servers as [TestServer, TestServer]
  })
  after(() => cluster[Symbol.asyncDispose]())

  const start = (server: TestServer, apiKey: string, key?: string) =>
    server.post(
      '/api/imports',
      { projectId: 'p', searchName: 's', files: ['a.csv', 'b.csv', 'c.csv'] },
      { apiKey, ...(key === undefined ? {} : { key }) },
    )
  const idOf = async (answer: ReturnType<typeof start>) => ({ searchId: String((await answer).body['searchId']) })

  test('imports are counted over all processes, and an accepted one is still answered to its key', async () => {
    const apiKey = await makeWorkspace(one, 'many')
    const first = await start(one, apiKey, 'first')
    for (const server of [two, one]) assert.equal((await start(server, apiKey)).status, 201)
    for (const key of [undefined, 'fourth']) {
      const refused = await start(two, apiKey, key)
      assert.deepEqual([refused.status, refused.body.type], [403, '/problems/quota-exceeded'], refused.text)
      assert.deepEqual(refused.body['quota'], { name: 'imports', limit: 3, used: 3 })
    }
    const again = await start(two, apiKey, 'first')
    assert.deepEqual([again.status, again.text], [201, first.text])
    assert.equal((await start(one, await makeWorkspace(one, 'few'))).status, 201)
  })

  test('bytes are counted over all processes, also of a length that nobody declared', async () => {
    const apiKey = await makeWorkspace(one, 'bytes')
    const started = await idOf(start(one, apiKey))
    const large = new Uint8Array(2_500_000).fill(120)
    assert.equal((await upload(one, started, 'a.csv', large, apiKey)).status, 201)
    const refused = await upload(two, started, 'b.csv', large, apiKey)
    assert.equal(refused.status, 403, refused.text)
    assert.deepEqual(refused.body['quota'], { name: 'upload-bytes', limit: 3_000_000, used: 2_500_000 })
    const streamed = await fetch(`${two.url}/api/imports/${started.searchId}/files/b.csv`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${apiKey}` },
      body: new Blob([large]).stream(),
      duplex: 'half',
    } as RequestInit)
    assert.equal(streamed.status, 403)
    // The same file again is no news, and what was refused has left nothing behind.
    assert.equal((await upload(two, started, 'a.csv', large, apiKey)).status, 200)
    assert.equal((await upload(two, started, 'b.csv', large.slice(0, 400_000), apiKey)).status, 201)
    const [kept] = await cluster.sql<{ used: unknown }>(
      `select sum(used) as used from workspace_usage where workspace_id = 'bytes' and quota = 'upload-bytes'`,
    )
    assert.equal(Number(kept?.used), 2_900_000)
  })

  test('a workspace has so many uploads under way on one server; another one is served meanwhile', async () => {
    const apiKey = await makeWorkspace(one, 'slow')
    const started = await idOf(start(one, apiKey))
    const slow = request(`${one.url}/api/imports/${started.searchId}/files/a.csv`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${apiKey}`, 'content-length': '10' },
    })
    slow.write('title')
    await until('the room is promised', async () => {
      const rows = await cluster.sql(
        `select 1 from import_uploads where search_id = '${started.searchId}' and promised = 10`,
      )
      return rows.length === 1
    })
    const refused = await upload(one, started, 'b.csv', 'title\nx\n', apiKey)
    assert.deepEqual([refused.status, refused.body.type], [429, '/problems/too-many-at-once'], refused.text)
    assert.deepEqual(refused.body['quota'], { name: 'uploads', limit: 1, used: 1 })
    assert.ok(Number(refused.headers.get('retry-after')) > 0)
    const other = await makeWorkspace(one, 'quick')
    assert.equal((await upload(one, await idOf(start(one, other)), 'a.csv', 'title\nx\n', other)).status, 201)
    slow.end('\nwxyz')
    const [response] = await once(slow, 'response')
    assert.equal(response.statusCode, 201, JSON.stringify(await json(response)))
    assert.equal((await upload(one, started, 'b.csv', 'title\nx\n', apiKey)).status, 201)
  })
})
