import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { openBucket } from '../../../../../service/imports/uploads/bucket.ts'
import type { StoredFile, Upload } from '../../../../../service/imports/uploads/storage.ts'
import { BUCKET_OF_TESTS, openTestBucket, PREFIX_OF_TESTS } from '../../../../support/service/imports/s3.ts'

const s3 = await openTestBucket()
const folder = await mkdtemp(join(tmpdir(), 'onceonly-bucket-'))
after(async () => {
  await s3[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})
const place = { name: BUCKET_OF_TESTS, prefix: PREFIX_OF_TESTS }
const storage = await openBucket({ client: s3.client, place, spoolFolder: folder, bytesMost: 100 })

async function* content(...parts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield Buffer.from(part)
}

async function textOf(of: Upload, file: StoredFile): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of storage.read(of, file)) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const upload = (searchId: string, name = 'a.ris'): Upload => ({ searchId, name })
/** Past every condition, as a server that knows none would let it. */
const overwrite = (of: Upload, text: string) =>
  s3.client.send(new PutObjectCommand({ Bucket: BUCKET_OF_TESTS, Key: storage.keyOf(of), Body: text }))

test('the same bytes again are the same file; other bytes are refused, and the first stay', async () => {
  const first = await storage.put(upload('s1'), content('one', 'two'))
  assert.ok(first.kind === 'stored')
  assert.deepEqual(await storage.put(upload('s1'), content('onetwo')), { ...first, kind: 'same' })
  assert.equal((await storage.put(upload('s1'), content('other!'))).kind, 'other')
  assert.equal(await textOf(upload('s1'), first.file), 'onetwo')
  assert.deepEqual(await storage.look(upload('s1')), first.file)
  assert.deepEqual(await readdir(folder), [])
})

test('of many uploads at once one wins, whole', async () => {
  const bodies = Array.from({ length: 6 }, (_, n) => String(n).repeat(90))
  const put = (body: string) => storage.put(upload('s2'), content(body)).catch((error: unknown) => error)
  const stored = await Promise.all(bodies.map(put))
  const kinds = stored.map((each) => (each instanceof Error ? each.name : (each as { kind: string }).kind))
  assert.equal(kinds.filter((kind) => kind === 'stored').length, 1, kinds.join())
  assert.ok(
    kinds.every((kind) => kind === 'stored' || kind === 'other' || kind === 'StorageAway'),
    kinds.join(),
  )
  const file = await storage.look(upload('s2'))
  assert.equal(file && (await textOf(upload('s2'), file)), bodies[kinds.indexOf('stored')])
})

test('a file that is replaced while it is compared is asked for again, never called the same', async () => {
  const of = upload('s6')
  await storage.put(of, content('first'))
  const client = new S3Client(s3.config)
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        const answer = await next(args)
        if (commandName === 'HeadObjectCommand') await overwrite(of, 'later')
        return answer
      },
    { step: 'initialize' },
  )
  const raced = await openBucket({ client, place, spoolFolder: folder, bytesMost: 100 })
  await assert.rejects(raced.put(of, content('first')), {
    name: 'StorageAway',
    message: /changed while it was compared/,
  })
  client.destroy()
})

test('what is too large, or breaks off, leaves nothing', async () => {
  assert.equal((await storage.put(upload('s3'), content('x'.repeat(60), 'x'.repeat(60)))).kind, 'too_large')
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('half')
    throw new Error('The client went away')
  }
  await assert.rejects(storage.put(upload('s3'), broken()), /went away/)
  assert.equal(await storage.look(upload('s3')), null)
  assert.deepEqual(await readdir(folder), [])
})

test('content that was replaced, removed or is too large is never read as the accepted one', async () => {
  const of = upload('s4', 'ü + ?.ris')
  const stored = await storage.put(of, content('accepted'))
  assert.ok(stored.kind === 'stored')
  assert.equal(await textOf(of, stored.file), 'accepted')
  await overwrite(of, 'replaced')
  await assert.rejects(textOf(of, stored.file), { name: 'Unreadable', message: /was replaced/ })
  await assert.rejects(textOf(upload('s4', 'none'), stored.file), { name: 'FileMissing' })
  await overwrite(of, 'x'.repeat(101))
  const large = await storage.look(of)
  assert.ok(large)
  await assert.rejects(textOf(of, large), { name: 'Unreadable', message: /more than 100 bytes/ })
})

test('a signed address takes one file of one length, once, with its headers', async () => {
  const direct = await storage.direct(upload('s5', 'ü 1.ris'), 5)
  assert.ok(direct)
  const { url, headers } = direct
  const put = (body: string, sent: Readonly<Record<string, string>> = headers) =>
    fetch(url, { method: 'PUT', headers: { ...sent }, body })
  const { 'if-none-match': _, ...unconditional } = headers
  assert.equal((await put('bytes', unconditional)).status, 403)
  assert.equal((await put('longer than that')).status, 403)
  assert.equal((await put('bytes')).status, 200)
  assert.equal((await put('other')).status, 412)
  const file = await storage.look(upload('s5', 'ü 1.ris'))
  assert.equal(file && (await textOf(upload('s5', 'ü 1.ris'), file)), 'bytes')
})

test('notifications of other buckets and folders are recognized', () => {
  const locate = (bucket: string, key: string) => storage.locate({ bucket, key })
  assert.deepEqual(locate(BUCKET_OF_TESTS, 'team-a/s/a.ris'), upload('s'))
  for (const [bucket, key, part] of [
    ['another', 'team-a/s/a.ris', 'bucket'],
    [BUCKET_OF_TESTS, 'team-b/s/a.ris', 'key'],
    [BUCKET_OF_TESTS, 'team-a/deep/s/a.ris', 'key'],
    [BUCKET_OF_TESTS, 's/a.ris', 'key'],
    [BUCKET_OF_TESTS, 'team-a/a.ris', 'key'],
  ] as const) {
    const found = locate(bucket, key)
    assert.equal(found !== null && 'part' in found && found.part, part, `${bucket} ${key}`)
  }
  assert.equal(locate(BUCKET_OF_TESTS, 'team-a/.onceonly'), null)
})

test('a bucket has the same id for every process; an unreachable one throws StorageAway', async () => {
  const other = await openBucket({ client: s3.client, place: { ...place, prefix: '' }, spoolFolder: folder })
  assert.equal(await storage.id(), await storage.id())
  assert.notEqual(await storage.id(), await other.id())
  await storage.examine()
  s3.away = true
  try {
    for (const call of [() => storage.id(), () => storage.examine(), () => storage.look(upload('s1'))]) {
      await assert.rejects(call, { name: 'StorageAway', message: /503/ })
    }
  } finally {
    s3.away = false
  }
  const none = await openBucket({ client: s3.client, place: { name: 'nowhere', prefix: '' }, spoolFolder: folder })
  await assert.rejects(none.examine(), { name: 'StorageAway' })
})
