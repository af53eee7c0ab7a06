import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ris } from '../../../service/imports/parse/test-files.ts'
import { until } from '../../../src/testing/until.ts'
import { startCommands } from '../../support/admin/cli/commands.ts'
import { openCluster, type TestServer } from '../../support/service/cluster.ts'
import { commandsIn, ended, hookSecret, see, startImport, upload } from '../../support/service/imports/imports.ts'

const skip = process.env['ONCEONLY_TEST_POSTGRES_URL'] === undefined ? 'no PostgreSQL server' : false

/** Half of the time that an import has. */
const POSTPONED_MS = 30 * 60_000
const STEP_MS = 10_000
/** So that a server has a chance to look before the next step; a busy one only needs more of them. */
const LOOK_MS = 200

interface Found {
  readonly name: string
  readonly verdict: string
}

async function uploadsFinding(server: TestServer): Promise<Found | undefined> {
  const { findings } = (await server.console('/doctor')).body as unknown as { readonly findings: readonly Found[] }
  return findings.find(({ name }) => name === 'uploads')
}

test('servers that share the folder of uploads are fine', async () => {
  await using cluster = await openCluster('sqlite', { processes: 2 })
  for (const server of cluster.servers) {
    assert.equal((await uploadsFinding(server))?.verdict, 'ok')
    assert.doesNotMatch(server.lines.join('\n'), /imports\.storage_not_shared/)
  }
})

test('servers that do not share the folder of uploads still parse each other’s files', { skip }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-folder-'))
  try {
    await using cluster = await openCluster('postgres', { env: { ONCEONLY_HOOK_SECRET: hookSecret } })
    const [one] = cluster.servers as [TestServer]
    const two = await cluster.add({ ONCEONLY_DATA: folder })
    const names = Array.from({ length: 6 }, (_, at) => `${at}.ris`)
    const started = await startImport(one, names)
    for (const [at, name] of names.entries()) {
      assert.equal((await upload(at % 2 === 0 ? one : two, started, name, ris(at))).status, 201)
    }
    // What is postponed comes back by the store's clock; well before the import itself would time out.
    for (let movedMs = 0; movedMs < POSTPONED_MS; movedMs += STEP_MS) {
      const { state } = await see(one, started.searchId)
      if (state === 'Completed' || state === 'Error') break
      await cluster.advance(STEP_MS)
      await new Promise((resolve) => void setTimeout(resolve, LOOK_MS))
    }
    const seen = await ended(one, started.searchId)
    // The second server found the folder of the first, and `doctor` says so on both.
    assert.match(two.lines.join('\n'), /imports\.storage_not_shared/)
    assert.doesNotMatch(one.lines.join('\n'), /imports\.storage_not_shared/)
    for (const server of [one, two]) assert.equal((await uploadsFinding(server))?.verdict, 'danger')
    assert.deepEqual([seen.state, seen.references, commandsIn(seen)], ['Completed', 6, 6], JSON.stringify(seen))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test('of two contents under one name the first counts on every server, also without a shared folder', {
  skip,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-folder-'))
  try {
    await using cluster = await openCluster('postgres')
    const [one] = cluster.servers as [TestServer]
    const two = await cluster.add({ ONCEONLY_UPLOADS: folder })
    await using cli = startCommands(import.meta.dirname, {
      ...process.env,
      ONCEONLY_OPERATOR_TOKEN: 'operator-token-of-tests',
    })
    const doctor = await until(
      'both servers have reported their folders',
      () => cli.run('doctor', '--store', cluster.address, '--server', one.url, '--json'),
      ({ stdout }) => stdout.includes('2 places'),
    )
    assert.equal(doctor.status, 1, doctor.stdout)
    assert.match((await cli.run('doctor', '--store', cluster.address, '--server', 'ftp://x')).stderr, /not an http/)
    const started = await startImport(one, ['a.ris', 'b.ris'])
    assert.equal((await upload(one, started, 'a.ris', ris(1))).status, 201)
    const other = await upload(two, started, 'a.ris', ris(2))
    assert.deepEqual([other.status, other.body.type], [409, '/problems/file-already-uploaded'], other.text)
    // What was refused is not kept, so that the same file is welcome there.
    const same = await upload(two, started, 'a.ris', ris(1))
    assert.equal(same.status, 201, same.text)
    assert.equal((await upload(one, started, 'b.ris', ris(3))).status, 201)
    assert.equal((await upload(two, started, 'b.ris', ris(3))).status, 201)
    const seen = await ended(two, started.searchId)
    assert.deepEqual([seen.state, commandsIn(seen)], ['Completed', 2], JSON.stringify(seen))
    const titles = await cluster.sql<{ title: string }>(`select title from import_references where file_name = 'a.ris'`)
    assert.deepEqual(
      titles.map(({ title }) => title),
      [/TI {2}- (.*)/.exec(ris(1))?.[1]],
    )
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
