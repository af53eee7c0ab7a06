import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { isOnceError } from 'onceonly'
import { createStreamClient } from 'onceonly/stream'
import { createFileStorage } from 'onceonly/stream/server'
import { until } from '../../../src/testing/until.ts'
import { openWorld, textsOf } from '../../support/streams/world.ts'

const world = await openWorld()
const folder = await mkdtemp(join(tmpdir(), 'onceonly-lock-'))
const children: ChildProcess[] = []
after(async () => {
  for (const child of children) child.kill('SIGKILL')
  await world.end()
  await rm(folder, { recursive: true, force: true })
})

interface Opener {
  readonly pid: number | undefined
  readonly lines: readonly string[]
  killed(): Promise<void>
}

function start(path: string, name: string): Opener {
  const program = fileURLToPath(import.meta.resolve('./storage-process.ts'))
  const child = spawn(process.execPath, ['--conditions=onceonly-source', program, path, name], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  children.push(child)
  const lines: string[] = []
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line))
  const over = once(child.stdout, 'close')
  return {
    pid: child.pid,
    lines,
    async killed() {
      child.kill('SIGKILL')
      await over
    },
  }
}

function kept({ lines }: Opener): readonly string[] {
  return lines.filter((line) => line.startsWith('kept ')).map((line) => line.slice('kept '.length))
}

async function pendingIn(path: string): Promise<readonly unknown[]> {
  const storage = createFileStorage({ path })
  const record = await storage.load()
  await storage.stop()
  return record?.pending.map(({ message }) => message.body) ?? []
}

test('two processes on one file: the second learns which process holds it, and no kept message is lost', async () => {
  const path = join(folder, 'two.place')
  const first = start(path, 'first')
  await until('the first keeps messages', () => kept(first).length >= 20)
  const second = start(path, 'second')
  await until('the second has answered', () => second.lines.length > 0)
  assert.deepEqual(second.lines, [`taken ${first.pid}`])
  await until('the first continues', () => kept(first).length >= 60)
  await first.killed()
  const pending = await pendingIn(path)
  for (const message of kept(first)) assert.ok(pending.includes(message), message)
  assert.equal((await stat(`${path}.lock`)).mode & 0o077, 0)
})

test('a killed process blocks no other, and of several that follow one gets the file', async () => {
  const path = join(folder, 'killed.place')
  const first = start(path, 'first')
  await until('the first keeps messages', () => kept(first).length > 0)
  const early = start(path, 'early')
  await until('the second has answered', () => early.lines.length > 0)
  await first.killed()
  const heirs = Array.from({ length: 6 }, (_, index) => start(path, `heir ${index}`))
  await until('all have answered', () => heirs.every(({ lines }) => lines.length > 0))
  const holders = heirs.filter(({ lines }) => lines[0] === 'holds')
  assert.equal(holders.length, 1, JSON.stringify(heirs.map(({ lines }) => lines[0])))
  for (const heir of heirs) {
    if (!holders.includes(heir)) assert.match(heir.lines[0] ?? '', /^taken \d+$/)
    await heir.killed()
  }
  const pending = await pendingIn(path)
  for (const message of [...kept(first), ...holders.flatMap(kept)]) assert.ok(pending.includes(message), message)
})

test('a reused process id of a dead holder blocks no other process', async () => {
  const path = join(folder, 'reused.place')
  const lock = new DatabaseSync(`${path}.lock`)
  lock.exec(`pragma user_version = ${process.pid}`)
  lock.close()
  const storage = createFileStorage({ path })
  assert.equal(await storage.load(), null)
  await storage.stop()
})

test('a second storage of the same process is refused until the first has stopped', async () => {
  const path = join(folder, 'same.place')
  const [first, second] = [createFileStorage({ path }), createFileStorage({ path })]
  await first.load()
  for (let attempt = 0; attempt < 2; attempt++) {
    await assert.rejects(
      second.load(),
      (error) => isOnceError(error, 'storage_taken') && error.details['pid'] === process.pid,
    )
  }
  await first.identify({ client: 'ann', epoch: 1, generation: 1 })
  await first.stop()
  assert.equal((await second.load())?.identity.client, 'ann')
  await second.stop()
})

test('a copied file with pending messages: both are started, each message is shown once, and the clone is notified', async () => {
  const paths = ['original.place', 'copy.place'].map((name) => join(folder, name))
  const [original = '', copy = ''] = paths
  const offline = createFileStorage({ path: original })
  const before = await createStreamClient({
    room: 'lobby',
    regions: ['eu'],
    transport: { connect: () => ({ send() {}, close() {} }) },
    mode: 'at-least-once',
    receiver: { message() {} },
    storage: offline,
  })
  for (let number = 1; number <= 10; number++) await before.send({ text: `offline ${number}` })
  await before.stop()
  await offline.stop()
  await copyFile(original, copy)
  const bob = await world.client()
  const doubts: unknown[] = []
  const storages = paths.map((path) => createFileStorage({ path }))
  const clones = await Promise.all(
    storages.map((storage) =>
      world.client({ storage, onDoubt: (messages) => void doubts.push(...messages.map(({ body }) => body)) }),
    ),
  )
  await until('one of them gets the messages in doubt', () => doubts.length === 10)
  await until('bob saw them', () => bob.seen.length >= 10)
  for (const each of clones) await each.say('and one more')
  await until(
    'bob saw the rest',
    () => bob.seen.filter(({ body }) => (body as { text: string }).text === 'and one more').length === 2,
  )
  const offlineTexts = textsOf(bob).filter((text) => text.startsWith('offline'))
  assert.deepEqual(
    offlineTexts,
    Array.from({ length: 10 }, (_, index) => `offline ${index + 1}`),
  )
  assert.equal(clones.flatMap(({ renewed }) => renewed).length, 1)
  for (const { client } of clones) await client.stop()
  for (const storage of storages) await storage.stop()
})
