import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { startCommands } from '../../../support/admin/cli/commands.ts'
import { startGateway } from '../../../support/gateway/process.ts'
import { openServer } from '../../../support/gateway/world.ts'

const folder = await mkdtemp(join(tmpdir(), 'onceonly-resolve-'))
const store = join(folder, 'store.db')
const commands = startCommands(folder, { ...process.env, ONCEONLY_STORE: store })
after(async () => {
  await commands[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

test('a request whose outcome an operator resolved is answered as its client expects', async (context) => {
  // It takes every request, and never answers.
  const upstream = await openServer(context, (request) => void request.socket.destroy())
  const config = { upstream, routes: [{ method: 'POST', path: '/things', caller: 'shared' as const }] }
  const gateway = await startGateway(context, folder, { config, store })
  const resolve = (key: string, ...words: string[]) =>
    commands.run('resolve', 'gateway', 'shared', 'POST /things', key, ...words, '--yes')

  const value = '{"id":"ch_1"}'
  const succeeded = ['--to', 'succeeded', '--value', value]
  const created = [...succeeded, '--status', '201', '--header', 'Location: /things/ch_1']
  for (const [key, words, status, body] of [
    ['created', created, 201, value],
    ['plain', succeeded, 200, value],
    ['empty', ['--status', '204', '--to', 'succeeded'], 204, ''],
    ['typed', [...succeeded, '--header', 'Content-Type: application/vnd.api+json'], 200, value],
  ] as const) {
    assert.equal((await gateway.ask({ key })).status, 502)
    assert.equal((await gateway.ask({ key })).problem, 'outcome-unknown')
    const resolved = await resolve(key, ...words)
    assert.equal(resolved.status, 0, resolved.stderr)
    const answer = await gateway.ask({ key })
    assert.deepEqual([answer.status, answer.body, answer.replayed], [status, body, true], key)
    const type = key === 'typed' ? 'application/vnd.api+json' : key === 'empty' ? null : 'application/json'
    assert.equal(answer.headers.get('content-type'), type)
    assert.equal(answer.headers.get('location'), key === 'created' ? '/things/ch_1' : null)
  }

  await gateway.ask({ key: 'bad' })
  for (const [words, why] of [
    [[...succeeded, '--status', '404'], /--status is not a whole number from 200 to 399/],
    [[...succeeded, '--status', '204'], /has no body/],
    [[...succeeded, '--header', 'Set-Cookie: a=b'], /belongs to one exchange/],
    [[...succeeded, '--header', 'nothing'], /is not a header/],
    [['--to', 'rerun', '--status', '201'], /belong to the resolution `succeeded`/],
  ] as const) {
    const refused = await resolve('bad', ...words)
    assert.deepEqual([refused.status, why.test(refused.stderr)], [2, true], refused.stderr)
  }
  assert.equal((await resolve('bad', '--to', 'succeeded')).status, 0)
  assert.equal((await gateway.ask({ key: 'bad' })).problem, 'response-not-stored')
})
