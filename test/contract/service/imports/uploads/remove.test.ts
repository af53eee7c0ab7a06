import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { openBucket } from '../../../../../service/imports/uploads/bucket.ts'
import { openFolder } from '../../../../../service/imports/uploads/folder.ts'
import type { Storage } from '../../../../../service/imports/uploads/storage.ts'
import { BUCKET_OF_TESTS, openTestBucket, PREFIX_OF_TESTS } from '../../../../support/service/imports/s3.ts'

const folder = await mkdtemp(join(tmpdir(), 'onceonly-remove-'))
after(() => rm(folder, { recursive: true, force: true }))

async function* content(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

async function goesAlone(storage: Storage): Promise<void> {
  const [one, two] = ['a.csv', 'b.csv'].map((name) => ({ searchId: 's', name })) as [Upload, Upload]
  await storage.put(one, content('one'))
  await storage.put(two, content('two'))
  // Twice: a crash may have come between the file and its row.
  for (let times = 0; times < 2; times++) await storage.remove(one, null)
  assert.equal(await storage.look(one), null)
  assert.equal((await storage.look(two))?.bytes, 3)
  await storage.remove(two, null)
  assert.equal(await storage.look(two), null)
}

type Upload = Parameters<Storage['look']>[0]

test('a file is removed from a folder, and the folder of its import with the last one', async () => {
  await goesAlone(await openFolder(join(folder, 'own')))
  assert.deepEqual(await readdir(join(folder, 'own')), ['unfinished'])
})

test('a file is removed from a bucket; a bucket that is away says so', async () => {
  await using s3 = await openTestBucket()
  const place = { name: BUCKET_OF_TESTS, prefix: PREFIX_OF_TESTS }
  const storage = await openBucket({ client: s3.client, place, spoolFolder: join(folder, 'spool') })
  await goesAlone(storage)
  s3.away = true
  await assert.rejects(storage.remove({ searchId: 's', name: 'a.csv' }, null), { name: 'StorageAway' })
})
