import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { until } from '../../../src/testing/until.ts'
import { openWorld, textsOf } from '../../support/streams/world.ts'
import type { ClientTask } from './client-process.ts'

const world = await openWorld()
const children: ChildProcess[] = []
after(async () => {
  for (const child of children) child.kill('SIGKILL')
  await world.end()
})

function start(task: ClientTask): ChildProcess {
  const program = fileURLToPath(import.meta.resolve('./client-process.ts'))
  const args = ['--conditions=onceonly-source', program, JSON.stringify(task)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  children.push(child)
  return child
}

async function kept(child: ChildProcess): Promise<void> {
  assert.ok(child.stdout)
  for await (const line of createInterface({ input: child.stdout })) if (line === 'kept') return
  assert.fail('the client has ended')
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  assert.equal(child.signalCode, 'SIGKILL')
}

test('a client is killed before its message has left: its successor sends it, once', async () => {
  const bob = await world.client()
  await until('bob is in', () => bob.client.status === 'live')
  const { proxy } = world.node('eu')
  const task = { kind: 'sends', url: world.url('eu'), path: join(world.folder, 'client.place') } as const
  proxy.pause()
  const first = start({ ...task, text: 'my last words' })
  await kept(first)
  first.kill('SIGKILL')
  await killed(first)
  proxy.resume()
  const second = start({ ...task, text: null })
  await kept(second)
  await until('bob heard of it', () => bob.seen.length > 0)
  // A file has one process at a time.
  second.kill('SIGKILL')
  await killed(second)
  const third = start({ ...task, text: 'and one more' })
  await until('bob heard the next', () => bob.seen.length > 1)
  assert.deepEqual(textsOf(bob), ['my last words', 'and one more'])
  third.kill('SIGKILL')
})

test('a client is killed in the middle of a receiver: what it wrote is there once', async () => {
  const ann = await world.client()
  const path = join(world.folder, 'bot.db')
  const task = { kind: 'applies', url: world.url('eu'), path } as const
  await ann.say('before')
  const first = start({ ...task, deadly: 'deadly' })
  await kept(first)
  await ann.say('deadly')
  await killed(first)
  await ann.say('after')
  start({ ...task, deadly: null })
  const applied = () => {
    // The killed client left a log that its successor is recovering meanwhile.
    const database = new DatabaseSync(path, { readOnly: true, timeout: 60_000 })
    try {
      return database
        .prepare('select text from applied order by rowid')
        .all()
        .map((row) => String(row['text']))
    } finally {
      database.close()
    }
  }
  await until('everything was applied', () => applied().includes('after'))
  const mine = applied().filter((text) => ['before', 'deadly', 'after'].includes(text))
  assert.deepEqual(mine, ['before', 'deadly', 'after'])
})
