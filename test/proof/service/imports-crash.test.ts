import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { ris } from '../../../service/imports/parse/test-files.ts'
import { breakTable } from '../../support/service/break.ts'
import type { Cluster, TestServer } from '../../support/service/cluster.ts'
import {
  commandsIn,
  ended,
  inEveryWorld,
  see,
  startImport,
  untilSeen,
  upload,
} from '../../support/service/imports/imports.ts'

/** Past any lease of a relay, of the bus and of a record. */
const LEASE_MS = 90_000

inEveryWorld('crashes of imports', (open, place) => {
  let cluster: Cluster
  before(async () => {
    cluster = await open(3)
  })

  test('a crash between the file and its announcement: another server announces it', async () => {
    const [one, two] = cluster.servers as [TestServer, TestServer]
    const started = await startImport(two, ['a.ris'])
    const mend = await breakTable(cluster, place, 'import_uploads', 'new.stored_at is not null', 'update')
    const lost = await upload(one, started, 'a.ris', ris(1))
    assert.equal(lost.status, 500, lost.text)
    assert.equal((await see(two, started.searchId)).files[0]?.status, 'waiting')
    await one.kill()
    await mend()
    // The test does not wait for the leases of killed processes.
    await cluster.advance(LEASE_MS)
    const seen = await ended(two, started.searchId)
    assert.deepEqual([seen.state, seen.references, commandsIn(seen)], ['Completed', 1, 1])
    await cluster.add()
  })

  test('a crash after the save still sends the commands', async () => {
    const [, , three] = cluster.servers as [TestServer, TestServer, TestServer]
    const started = await startImport(three, ['a.ris', 'b.ris'])
    await untilSeen('the import has begun', three, started.searchId, ({ history }) => history.length > 0)
    await upload(three, started, 'a.ris', ris(1))
    const mend = await breakTable(cluster, place, 'import_job_files', "new.status = 'parsed'", 'update')
    await upload(three, started, 'b.ris', ris(2))
    await untilSeen('files are being read', three, started.searchId, ({ state }) => state === 'Parsing')
    await Promise.all(cluster.servers.map((server) => server.kill()))
    await mend()
    await cluster.advance(LEASE_MS)
    const fresh = await Promise.all([cluster.add(), cluster.add(), cluster.add()])
    const seen = await ended(fresh[0], started.searchId)
    assert.deepEqual([seen.state, seen.references, commandsIn(seen)], ['Completed', 2, 2])
  })
})
