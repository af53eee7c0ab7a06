import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { openFolder } from './folder.ts'
import type { StoredFile, Upload } from './storage.ts'

const folder = await mkdtemp(join(tmpdir(), 'onceonly-storage-'))
after(() => rm(folder, { recursive: true, force: true }))
const storage = await openFolder(folder, { bytesMost: 100 })

async function* content(...parts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield Buffer.from(part)
}

const upload = (searchId: string, name: string): Upload => ({ searchId, name })

async function textOf(of: Upload): Promise<string> {
  const file = await storage.look(of)
  assert.ok(file)
  return await contentOf(of, file)
}

async function contentOf(of: Upload, file: StoredFile): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of storage.read(of, file)) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const unfinished = () => readdir(join(folder, 'unfinished'))

test('the same bytes again are the same file; other bytes are refused, and the first stay', async () => {
  const first = await storage.put(upload('s1', 'a.ris'), content('one', 'two'))
  assert.equal(first.kind, 'stored')
  assert.deepEqual(await storage.put(upload('s1', 'a.ris'), content('onetwo')), { ...first, kind: 'same' })
  assert.equal((await storage.put(upload('s1', 'a.ris'), content('other'))).kind, 'other')
  assert.equal(await textOf(upload('s1', 'a.ris')), 'onetwo')
  assert.deepEqual(await storage.look(upload('s1', 'a.ris')), 'file' in first ? first.file : null)
  assert.deepEqual(await unfinished(), [])
})

test('of many uploads at once one wins, whole', async () => {
  const bodies = Array.from({ length: 10 }, (_, n) => String(n).repeat(90))
  const stored = await Promise.all(bodies.map((body) => storage.put(upload('s2', 'a.ris'), content(body))))
  assert.equal(stored.filter(({ kind }) => kind === 'stored').length, 1)
  assert.equal(stored.filter(({ kind }) => kind === 'other').length, 9)
  assert.equal(await textOf(upload('s2', 'a.ris')), bodies[stored.findIndex(({ kind }) => kind === 'stored')])
})

test('what is too large, or breaks off, leaves nothing', async () => {
  assert.equal((await storage.put(upload('s3', 'a.ris'), content('x'.repeat(60), 'x'.repeat(60)))).kind, 'too_large')
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('half')
    throw new Error('The client went away')
  }
  await assert.rejects(storage.put(upload('s3', 'a.ris'), broken()), /went away/)
  assert.equal(await storage.look(upload('s3', 'a.ris')), null)
  assert.deepEqual(await unfinished(), [])
})

test('names never become paths', async () => {
  for (const name of ['../../escaped', '/etc/passwd', '..', 'a/b', `${'long'.repeat(100)}.ris`]) {
    assert.equal((await storage.put(upload(`../${name}`, name), content(name.slice(0, 50)))).kind, 'stored')
    assert.equal(await textOf(upload(`../${name}`, name)), name.slice(0, 50))
  }
  const outside = await readdir(join(folder, '..'))
  assert.equal(outside.includes('escaped'), false)
})

test('what broken uploads left behind is removed after a day, and nothing else is', async () => {
  const [old, fresh] = [join(folder, 'unfinished', 'old'), join(folder, 'unfinished', 'fresh')]
  await Promise.all([writeFile(old, ''), writeFile(fresh, '')])
  const twoDaysAgo = new Date(Date.now() - 2 * 24 * 3_600_000)
  await utimes(old, twoDaysAgo, twoDaysAgo)
  await storage.tidy()
  assert.deepEqual(await unfinished(), ['fresh'])
})

test('only the content that was accepted is read, and what is discarded makes room', async () => {
  const of = upload('s4', 'a.ris')
  const stored = await storage.put(of, content('mine'))
  assert.ok(stored.kind === 'stored')
  assert.equal(await contentOf(of, stored.file), 'mine')
  await assert.rejects(contentOf(of, { ...stored.file, etag: 'theirs' }), { name: 'FileMissing' })
  await storage.discard(of)
  await assert.rejects(contentOf(of, stored.file), { name: 'FileMissing' })
  assert.equal((await storage.put(of, content('theirs'))).kind, 'stored')
})
