import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { createRegionRouter } from 'onceonly/region'
import { recordIdOf } from '../../../../src/ledger/core/identity.ts'
import { until } from '../../../../src/testing/until.ts'
import { createProxy } from '../../../../tools/proxy/index.ts'
import { freePort, startGateway, temporaryFolder } from '../../../support/gateway/process.ts'
import { openCounting, things } from '../../../support/gateway/world.ts'

const names = ['eu', 'us', 'ap'] as const
/** Short, because the test waits for it, and enough for three processes on a busy machine to answer. */
const QUICK_MS = 3_000
/** Longer than a test may take: whatever waited for it would hang. */
const FOR_EVER_MS = 600_000
const secret = 'a secret of three regions, long enough'

async function statusFrom(localAddress: string, port: number, headers: Record<string, string>): Promise<number> {
  const sent = request({
    host: '127.0.0.1',
    port,
    localAddress,
    method: 'POST',
    path: '/things',
    headers,
    agent: false,
  })
  sent.end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  answer.resume()
  return answer.statusCode ?? 0
}

test('three regions, each with a store and a link of its own: a key is taken by its home alone', async (context) => {
  const folder = await temporaryFolder(context)
  const upstream = await openCounting(context)
  const ports = await Promise.all(names.map(freePort))
  const links = await Promise.all(ports.map((targetPort) => createProxy({ targetPort })))
  context.after(() => Promise.all(links.map((link) => link.stop())))
  const regions = Object.fromEntries(names.map((name, at) => [name, `http://127.0.0.1:${links[at]?.port}`]))
  const gateways = await Promise.all(
    names.map((self, at) =>
      startGateway(context, folder, {
        store: join(folder, `${self}.db`),
        port: ports[at] ?? 0,
        config: {
          upstream: upstream.url,
          routes: [
            { ...things, caller: { header: 'x-user' }, timeouts: { answerMs: FOR_EVER_MS } },
            { ...things, path: '/guarded', key: 'optional', content: {} },
            {
              ...things,
              path: '/quick',
              timeouts: { connectMs: QUICK_MS, answerMs: QUICK_MS },
              whileRunning: 'conflict',
            },
          ],
          region: { self, regions, secret },
        },
      }),
    ),
  )
  const headers = { 'x-user': 'ann' }

  // 1. The same key at three regions at once: one effect, and the same answer everywhere.
  for (let at = 0; at < 12; at++) {
    const answers = await Promise.all(gateways.map((gateway) => gateway.ask({ key: `three-${at}`, headers })))
    assert.deepEqual(
      answers.map(({ status, body }) => [status, body]),
      Array(3).fill([201, '{"got":12}']),
    )
    assert.equal(answers.filter(({ replayed }) => replayed).length, 2)
    assert.equal(upstream.heads, at + 1)
  }
  // The service gets the client's real address, wherever the home of a key is, and not what a client claims.
  for (let at = 0; at < 6; at++) {
    const said = { ...headers, 'x-forwarded-for': '6.6.6.6', 'onceonly-client': 'https 6.6.6.6' }
    assert.equal(await statusFrom('127.0.0.2', ports[0] ?? 0, { ...said, 'idempotency-key': `client-${at}` }), 201)
    const { 'x-forwarded-for': address, 'x-forwarded-proto': proto, ...rest } = upstream.seen.at(-1)?.headers ?? {}
    assert.deepEqual([address, proto, rest['onceonly-client']], ['127.0.0.2', 'http', undefined])
  }
  // Every region serves the status, to the caller only, whichever region is the home.
  for (const key of ['three-0', 'three-1', 'three-2']) {
    const id = recordIdOf({ tenant: 'gateway', caller: 'ann', operation: 'POST /things', key })
    const look = { method: 'GET', path: `/.onceonly/operations/${id}`, key: null, body: null }
    for (const gateway of gateways) {
      assert.match((await gateway.ask({ ...look, headers })).body, /"status":"succeeded"/)
      assert.equal((await gateway.ask({ ...look, headers: { 'x-user': 'bob' } })).status, 404)
    }
  }
  // 2. Content is at home somewhere, too; and two callers of one key are two identities.
  const keyless = await Promise.all(gateways.map((gateway) => gateway.ask({ path: '/guarded', key: null })))
  assert.deepEqual(
    keyless.map(({ status }) => status),
    [201, 201, 201],
  )
  assert.equal(upstream.heads, 19)
  for (const user of ['bob', 'eve']) await gateways[0]?.ask({ key: 'three-1', headers: { 'x-user': user } })
  assert.equal(upstream.heads, 21)
  assert.equal(
    upstream.seen.some(({ headers: seen }) => 'onceonly-region' in seen),
    false,
    'between regions only',
  )

  // 3. The home is cut off: the others refuse, and nothing is executed anywhere else.
  using map = createRegionRouter({ self: 'eu', regions, secret })
  const keys = Array.from({ length: 30 }, (_, at) => `cut-${at}`)
  const homeOf = (key: string) => map.home({ tenant: 'gateway', caller: 'ann', operation: 'POST /things', key })
  const [lost = ''] = keys.filter((key) => homeOf(key) === 'us')
  const [kept = ''] = keys.filter((key) => homeOf(key) === 'eu')
  links[1]?.refuse()
  links[1]?.cut()
  for (const at of [0, 2]) {
    const refused = await gateways[at]?.ask({ key: lost, headers })
    assert.deepEqual([refused?.status, refused?.problem], [503, 'home-unreachable'])
    assert.match(refused?.headers.get('retry-after') ?? '', /^\d+$/)
  }
  assert.equal(upstream.heads, 21)
  assert.equal((await gateways[1]?.ask({ key: lost, headers }))?.status, 201, 'the home itself still takes it')
  assert.equal((await gateways[2]?.ask({ key: kept, headers }))?.status, 201, 'other homes are not touched')
  await links[1]?.accept()
  assert.equal(
    (await gateways[0]?.ask({ key: lost, headers }))?.replayed,
    true,
    'and it is found when the link is back',
  )
  assert.equal(upstream.heads, 23)

  // 4. A link that hangs, on a connection that was good a moment ago, is away as soon as the rule's time is over.
  const quickHome = (key: string) =>
    map.home({ tenant: 'gateway', caller: 'shared', operation: 'POST /quick', key }) === 'us'
  const [warm = '', hanging = ''] = keys.filter(quickHome)
  assert.equal((await gateways[0]?.ask({ path: '/quick', key: warm }))?.status, 201)
  links[1]?.pause()
  // Meanwhile a request whose rule would wait forever: a silent link is given up.
  const [silent = ''] = keys.filter((key) => homeOf(key) === 'us' && key !== lost)
  const waiting = gateways[0]?.ask({ key: silent, headers })
  const hung = await gateways[0]?.ask({ path: '/quick', key: hanging })
  assert.deepEqual([hung?.status, hung?.problem], [503, 'home-unreachable'])
  const given = await waiting
  assert.deepEqual([given?.status, given?.problem], [503, 'home-unreachable'])
  assert.match(given?.headers.get('retry-after') ?? '', /^\d+$/)
  assert.equal(upstream.heads, 24, 'nothing is executed elsewhere')
  links[1]?.resume()
  // The first ones may arrive now that the link is back: they run once, whichever copy arrives.
  for (const one of [
    { path: '/quick', key: hanging },
    { key: silent, headers },
  ]) {
    await until(
      'the link is back',
      async () => gateways[0]?.ask(one),
      (found) => found?.status === 201,
    )
  }
  assert.equal(upstream.heads, 26)

  // 5. Only a region can sign as one.
  const forged = await gateways[0]?.ask({
    key: 'forged',
    headers: { ...headers, 'onceonly-region': 'v1.0.us.eu.YQ.YQ.x' },
  })
  assert.deepEqual([forged?.status, forged?.problem], [403, 'not-authorized'])
  assert.equal(upstream.heads, 26)
})
