import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { until } from '../../../src/testing/until.ts'

const program = join(import.meta.dirname, 'content/server.ts')

/** A service as a process of its own: its port, and how often its handler ran. */
async function start(context: TestContext, path: string, kind: 'hangs' | 'attaches' | 'answers') {
  const child = fork(program, [path, kind], { execArgv: ['--conditions=onceonly-source'] })
  const ended = once(child, 'exit')
  context.after(() => void child.kill('SIGKILL'))
  const [port] = (await once(child, 'message')) as [number]
  let runs = 0
  child.on('message', () => void runs++)
  const post = async () => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"name":"one"}' }
    const answer = await fetch(`http://127.0.0.1:${port}/things`, init)
    const text = await answer.text()
    return { status: answer.status, text, replayed: answer.headers.get('idempotent-replayed') === 'true' }
  }
  return {
    post,
    get runs() {
      return runs
    },
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Two processes on one store; the first is killed in its handler, and the second is asked for the same content. */
async function killed(context: TestContext, kind: 'hangs' | 'attaches') {
  const folder = await mkdtemp(join(tmpdir(), 'onceonly-content-'))
  context.after(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'store.db')
  const [first, second] = [await start(context, path, kind), await start(context, path, 'answers')]
  const lost = first.post().catch(() => 'lost')
  await until('the first process runs its handler', () => first.runs === 1)
  const early = await second.post()
  assert.equal(early.status, 409, early.text)
  assert.match(early.text, /request-in-progress/)
  await first.kill()
  assert.equal(await lost, 'lost')
  const late = await until('the lease has ended', second.post, ({ text }) => !text.includes('request-in-progress'))
  return { late, second }
}

test('a process that is killed before its answer leaves its content to the next, once', async (context) => {
  const { late, second } = await killed(context, 'hangs')
  assert.deepEqual([late.status, late.text, late.replayed], [201, 'made', false])
  const again = await second.post()
  assert.deepEqual([again.status, again.text, again.replayed, second.runs], [201, 'made', true, 1])
})

test('a process that is killed after it attached what it made: its content is not made again', async (context) => {
  const { late, second } = await killed(context, 'attaches')
  assert.equal(late.status, 409, late.text)
  assert.match(late.text, /outcome-unknown/)
  assert.equal(second.runs, 0)
})
