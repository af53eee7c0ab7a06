import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Redis } from 'ioredis'
import { createLedger } from 'onceonly'
import { redisStore } from 'onceonly/redis'
import { startCommands } from '../../../support/admin/cli/commands.ts'

const url = process.env['ONCEONLY_TEST_REDIS_URL']
const skip = url === undefined ? 'ONCEONLY_TEST_REDIS_URL is not set' : false
const prefix = `cli:${process.pid}`
/** The driver is found from the folder that the command runs in. */
const root = join(import.meta.dirname, '../../../..')

test('every command that makes sense on redis:// answers and acts, and every other one says why not in one line', {
  skip,
}, async () => {
  const store = redisStore(new Redis(url ?? '', { lazyConnect: true }), { prefix })
  const once = createLedger({ store, background: false })
  const pay = once.operation<number>({ name: 'pay', effect: 'external' })
  const who = { tenant: 'acme', caller: 'shop' }
  for (const key of ['one', 'two', 'three']) {
    await pay.execute({ ...who, key }, 1, () => Promise.reject(new Error('cut')))
  }
  await pay.run({ ...who, key: 'paid' }, 1, async () => 'paid')
  await pay.run({ ...who, key: 'paid' }, 1, async () => 'never')
  await pay.execute({ ...who, key: 'paid' }, 2, async () => 'never')
  await once.stop()
  await store.stop()

  const commands = startCommands(root, { ...process.env, ONCEONLY_STORE: `${url}?prefix=${prefix}` })
  after(() => commands[Symbol.asyncDispose]())
  const json = async (...args: string[]) => JSON.parse((await commands.run(...args, '--json')).stdout)
  const status = await json('status')
  assert.deepEqual([status.store, status.states.unknown, status.states.succeeded], ['redis', 3, 1])
  const [explained] = await json('explain', 'paid')
  assert.deepEqual([explained.answers.length, explained.record.replays, explained.record.conflicts], [10, 1, 1])
  assert.equal((await json('inspect', 'acme', 'shop', 'pay', 'paid')).record.state, 'succeeded')
  assert.equal((await json('unknowns')).length, 3)
  assert.equal((await json('conflicts')).length, 1)
  assert.equal((await json('busiest'))[0].caller, 'shop')
  assert.deepEqual(await json('stale'), [])
  assert.ok((await json('doctor')).findings.length > 0)

  const act = (...args: string[]) => commands.run(...args, '--yes')
  const identity = (key: string) => ['acme', 'shop', 'pay', key]
  const unasked = await commands.run('resolve', ...identity('one'), '--to', 'rerun')
  assert.deepEqual([unasked.status, /Say --yes/.test(unasked.stderr)], [2, true])
  const resolved = await act('resolve', ...identity('one'), '--to', 'succeeded', '--value', '"paid"')
  assert.deepEqual([resolved.status, resolved.stdout], [0, 'Resolved.\n'])
  assert.match(resolved.stderr, /^The redis store keeps no audit: [^\n]*\n$/, 'the operator sees what is missing')
  assert.equal((await act('resolve', ...identity('two'), '--to', 'rerun')).status, 0)
  assert.equal((await act('forget', ...identity('paid'))).status, 0)
  const refused = await act('release', ...identity('three'))
  assert.deepEqual([refused.status, refused.stderr.trim().split('\n').length], [2, 1], refused.stderr)
  assert.equal((await json('unknowns')).length, 1)
  assert.equal((await act('sweep')).status, 0)

  for (const args of [['events'], ['outbox', 'dead'], ['sagas'], ['runs'], ['audit'], ['migrate', '--yes']]) {
    const { status: code, stdout, stderr } = await commands.run(...args)
    assert.deepEqual([code, stdout], [2, ''], args.join(' '))
    assert.match(stderr, /^onceonly: The redis store [^\n]*\.\n$/)
  }
})

test('a server that is not there is one clear line', async () => {
  const commands = startCommands(root, { ...process.env, ONCEONLY_STORE: 'redis://127.0.0.1:1' })
  after(() => commands[Symbol.asyncDispose]())
  const { status, stdout, stderr } = await commands.run('status')
  assert.deepEqual([status, stdout, stderr.trim().split('\n').length], [2, '', 1], stderr)
  assert.match(stderr, /The store cannot be reached/)
})
