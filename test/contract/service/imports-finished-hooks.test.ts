import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ris } from '../../../service/imports/parse/test-files.ts'
import { type Cluster, openCluster, type TestServer } from '../../support/service/cluster.ts'
import { ended, hookSecret, notification, notify, startImport, upload } from '../../support/service/imports/imports.ts'

let cluster: Cluster
let server: TestServer
before(async () => {
  cluster = await openCluster('sqlite', { env: { ONCEONLY_HOOK_SECRET: hookSecret } })
  ;[server] = cluster.servers as [TestServer]
})
after(() => cluster[Symbol.asyncDispose]())

test('a notification of a file that was never stored is ignored once its import has ended', async () => {
  const started = await startImport(server, ['a.ris', 'b.ris'])
  const early = await notify(server, notification(started.searchId, 'b.ris'))
  // The storage may only be faster than its file.
  assert.deepEqual([early.status, early.body.retryable], [409, true], early.text)
  await upload(server, started, 'a.ris', ris(1))
  await cluster.advance(61 * 60_000)
  assert.equal((await ended(server, started.searchId)).state, 'Error')
  const late = await notify(server, notification(started.searchId, 'b.ris'))
  assert.equal(late.status, 200, late.text)
  assert.deepEqual(late.body, { received: 0, duplicates: 0, ignored: 1 })
  const unknown = await notify(server, notification(started.searchId, 'c.ris'))
  assert.deepEqual([unknown.status, unknown.body.retryable], [404, false])
})
