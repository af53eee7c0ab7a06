import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { openStorage } from './storage.ts'

const folder = await mkdtemp(join(tmpdir(), 'onceonly-storage-'))
after(() => rm(folder, { recursive: true, force: true }))
const storage = await openStorage(folder, 100)

async function* content(...parts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield Buffer.from(part)
}

async function textOf(searchId: string, name: string): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of storage.read(searchId, name)) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const unfinished = () => readdir(join(folder, 'unfinished'))

test('the same bytes again are the same file; other bytes are refused, and the first stay', async () => {
  const first = await storage.put('s1', 'a.ris', content('one', 'two'))
  assert.equal(first.kind, 'stored')
  assert.deepEqual(await storage.put('s1', 'a.ris', content('onetwo')), { ...first, kind: 'same' })
  assert.equal((await storage.put('s1', 'a.ris', content('other'))).kind, 'other')
  assert.equal(await textOf('s1', 'a.ris'), 'onetwo')
  assert.deepEqual(await storage.look('s1', 'a.ris'), 'file' in first ? first.file : null)
  assert.deepEqual(await unfinished(), [])
})

test('of many uploads at once one wins, whole', async () => {
  const bodies = Array.from({ length: 10 }, (_, n) => String(n).repeat(90))
  const stored = await Promise.all(bodies.map((body) => storage.put('s2', 'a.ris', content(body))))
  assert.equal(stored.filter(({ kind }) => kind === 'stored').length, 1)
  assert.equal(stored.filter(({ kind }) => kind === 'other').length, 9)
  assert.equal(await textOf('s2', 'a.ris'), bodies[stored.findIndex(({ kind }) => kind === 'stored')])
})

test('what is too large, or breaks off, leaves nothing', async () => {
  assert.equal((await storage.put('s3', 'a.ris', content('x'.repeat(60), 'x'.repeat(60)))).kind, 'too_large')
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('half')
    throw new Error('The client went away')
  }
  await assert.rejects(storage.put('s3', 'a.ris', broken()), /went away/)
  assert.equal(await storage.has('s3', 'a.ris'), false)
  assert.equal(await storage.look('s3', 'a.ris'), null)
  assert.deepEqual(await unfinished(), [])
})

test('names never become paths', async () => {
  for (const name of ['../../escaped', '/etc/passwd', '..', 'a/b', `${'long'.repeat(100)}.ris`]) {
    assert.equal((await storage.put(`../${name}`, name, content(name.slice(0, 50)))).kind, 'stored')
    assert.equal(await textOf(`../${name}`, name), name.slice(0, 50))
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
