import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openCounting, openGateway, things } from '../../support/gateway/world.ts'

/** What every client sends alike: the key of an application, and the password of a test system. */
const shared = [{ 'x-api-key': 'of-the-application' }, { authorization: `Basic ${btoa('team:password')}` }]

test('beside a credential that all share, an answer is shown to its own cookie only', async (context) => {
  const upstream = await openCounting(context)
  const { replay: _replay, caller: _caller, ...derived } = things
  const world = await openGateway(context, upstream.url, [
    derived,
    { ...derived, path: '/named', caller: { header: 'x-api-key' } },
    { ...derived, path: '/guarded', key: 'optional', content: { decideMs: 10_000 } },
  ])
  for (const [at, credential] of shared.entries()) {
    const ask = (cookie: string) => world.ask({ key: `key-${at}`, headers: { ...credential, cookie } })
    assert.equal((await ask('sid=alice')).status, 201)
    const bob = await ask('sid=bob')
    assert.deepEqual([bob.status, bob.problem, upstream.heads], [409, 'credential-changed', at + 1])
    assert.doesNotMatch(bob.body, /got/)
    assert.equal((await ask('sid=alice')).replayed, true)
  }
  const [application = {}] = shared
  const guarded = (cookie: string) => world.ask({ path: '/guarded', key: null, headers: { ...application, cookie } })
  assert.deepEqual([(await guarded('sid=alice')).replayed, (await guarded('sid=bob')).replayed], [false, false])
  assert.equal((await guarded('sid=alice')).replayed, true)
  // In a rule that names its caller, only that caller counts.
  const named = (cookie: string) => world.ask({ path: '/named', headers: { ...application, cookie } })
  assert.deepEqual([(await named('theme=dark')).replayed, (await named('theme=light')).replayed], [false, true])
})
