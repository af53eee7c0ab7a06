import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ris } from '../../../service/imports/parse/test-files.ts'
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
