import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from '../../../src/testing/until.ts'
import { breakTable } from '../../support/service/break.ts'
import { onEveryPlace, openCluster, type TestServer } from '../../support/service/cluster.ts'
import { upload } from '../../support/service/imports/upload.ts'

const DAY = 24 * 3_600_000
/** What the folder calls an import, and a file of it. */
const digest = (text: string) => createHash('sha256').update(text).digest('hex')

onEveryPlace('retention and crashes', (place) => {
  async function openWorld() {
    const folder = await mkdtemp(join(tmpdir(), 'onceonly-uploads-'))
    const env = { ONCEONLY_SWEEP_EVERY_MS: '100', ONCEONLY_UPLOADS: folder }
    const cluster = await openCluster(place, { env })
    return {
      cluster,
      folder,
      /** Beside its own name and what is on its way. */
      stored: async () => (await readdir(folder)).filter((name) => name !== 'id' && name !== 'unfinished'),
      count: async (table: string, where = 'true') => {
        const [row] = await cluster.sql<{ n: unknown }>(`select count(*) as n from ${table} where ${where}`)
        return Number(row?.n)
      },
      async [Symbol.asyncDispose]() {
        await cluster[Symbol.asyncDispose]()
        await rm(folder, { recursive: true, force: true })
      },
    }
  }

  async function completed(server: TestServer): Promise<string> {
    const answer = await server.post('/api/imports', { projectId: 'p', searchName: 's', files: ['a.csv'] })
    const searchId = String(answer.body['searchId'])
    assert.equal((await upload(server, { searchId }, 'a.csv', 'title\nOne\n')).status, 201)
    const state = async () => (await server.get(`/api/imports/${searchId}`)).body['state']
    await until('the import is complete', async () => (await state()) === 'Completed')
    return searchId
  }

  test('a process that dies between a file and its row leaves neither for good', async () => {
    await using world = await openWorld()
    const { cluster, stored, count } = world
    const [one] = cluster.servers as [TestServer]
    await completed(one)
    const mend = await breakTable(cluster, place, 'import_uploads', 'new.removed_at is not null', 'update')
    await cluster.advance(8 * DAY)
    await until('the file is gone', async () => (await stored()).length === 0)
    await one.kill()
    assert.equal(await count('import_uploads', 'removed_at is null'), 1)
    await mend()
    await cluster.add()
    await until('its row knows', async () => (await count('import_uploads', 'removed_at is null')) === 0)
    const [kept] = await cluster.sql<{ used: unknown }>(
      `select sum(used) as used from workspace_usage where quota = 'upload-bytes'`,
    )
    assert.equal(Number(kept?.used), 0)
  })

  test('a file that comes after its row was written goes with its import', async () => {
    await using world = await openWorld()
    const { cluster, folder, stored, count } = world
    const [one] = cluster.servers as [TestServer]
    const searchId = await completed(one)
    await cluster.advance(8 * DAY)
    await until('the row knows', () => count('import_jobs', 'files_removed = 1').then((n) => n === 1))
    // An upload that was under way meanwhile, in a process that died before it looked again.
    await mkdir(join(folder, digest(searchId)), { recursive: true })
    await writeFile(join(folder, digest(searchId), digest('a.csv')), 'title\nOne\n')
    await cluster.advance(91 * DAY)
    await until('all of it is gone', async () => (await count('import_jobs')) === 0)
    assert.deepEqual(await stored(), [])
  })
})
