import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import got from 'got'
import { until } from '../../../src/testing/until.ts'
import { createProxy } from '../../../tools/proxy/index.ts'
import { AUDIENCE, type Issuer, openIssuer } from '../../support/gateway/issuer.ts'
import { freePort, startGateway, temporaryFolder } from '../../support/gateway/process.ts'
import { openCounting } from '../../support/gateway/world.ts'

const rule = { method: 'POST', path: '/things' } as const
const JSON_TYPE = { 'content-type': 'application/json' }

/** A gateway that verifies the tokens of an issuer, before an upstream that counts. */
async function openVerifying(context: TestContext, issuer: Issuer) {
  const upstream = await openCounting(context)
  const folder = await temporaryFolder(context)
  const gateway = await startGateway(context, folder, {
    config: { upstream: upstream.url, routes: [rule], jwks: jwksOf(issuer) },
    store: `${folder}/gateway.db`,
  })
  return { upstream, gateway }
}

const jwksOf = ({ issuer, url }: Issuer) => ({ issuer, audience: AUDIENCE, url })

test('keys that are exchanged while a command is retried: the next token is good, the withdrawn key is not', async (context) => {
  const issuer = await openIssuer(context)
  const old = await issuer.create('RS256', 'old')
  const { upstream, gateway } = await openVerifying(context, issuer)
  const ask = (token: string) => gateway.ask({ headers: { authorization: `Bearer ${token}` } })
  const withdrawn = await old.token()
  assert.equal((await ask(await old.token())).status, 201)

  issuer.published = []
  const fresh = await issuer.create('ES256', 'fresh')
  // The old key is cached, and valid until the keys are loaded again.
  assert.equal((await ask(withdrawn)).replayed, true)
  const renewed = await until(
    'the new key is known',
    async () => ask(await fresh.token()),
    ({ replayed }) => replayed,
  )
  assert.equal(renewed.status, 201)
  assert.equal((await ask(withdrawn)).problem, 'credential-changed')
  assert.equal(upstream.heads, 1)
  assert.ok(issuer.requests <= 4, `asked ${issuer.requests} times`)
})

test('an issuer that never answers delays requests only shortly, and nothing is done twice', async (context) => {
  const issuer = await openIssuer(context)
  const signer = await issuer.create('ES256', 'k1')
  const published = issuer.published
  issuer.answer = () => {}
  const { upstream, gateway } = await openVerifying(context, issuer)
  const ask = async (key: string) => gateway.ask({ key, headers: { authorization: `Bearer ${await signer.token()}` } })
  const all = await Promise.all(Array.from({ length: 20 }, (_, at) => ask(`key-${at}`)))
  assert.deepEqual(new Set(all.map(({ status }) => status)), new Set([201]))
  // A busy machine may be through with the first before all have come.
  assert.ok(issuer.requests <= 2, `one request for all who wait, not ${issuer.requests}`)
  assert.equal((await ask('key-0')).problem, 'credential-changed')

  // It is back: what was recorded before stays with its credential, what comes now is verified.
  issuer.answer = null
  issuer.published = published
  let number = 0
  await until('tokens are verified again', async () => {
    const key = `later-${++number}`
    await ask(key)
    return (await ask(key)).replayed
  })
  assert.equal((await ask('key-0')).problem, 'credential-changed')
  assert.equal(upstream.heads, 20 + number)
})

test('the unchanged got, whose hook renews the token before every retry, gets its lost answer', async (context) => {
  const issuer = await openIssuer(context)
  const signer = await issuer.create('EdDSA', 'k1')
  const { upstream, gateway } = await openVerifying(context, issuer)
  await using proxy = await createProxy({ targetPort: gateway.port })
  proxy.dropNextResponse({ when: (request) => request.includes('POST /things') })
  const sent = new Set<string>()
  const answer = await got.post(`http://127.0.0.1:${proxy.port}/things`, {
    headers: { ...JSON_TYPE, 'idempotency-key': 'once' },
    body: '{"amount":1}',
    retry: { limit: 3, methods: ['POST'] },
    hooks: {
      beforeRequest: [
        async (options) => {
          const token = await signer.token()
          sent.add(token)
          options.headers['authorization'] = `Bearer ${token}`
        },
      ],
    },
  })
  assert.deepEqual([answer.statusCode, answer.body], [201, '{"got":12}'])
  assert.equal(sent.size, 2)
  assert.equal(upstream.heads, 1)
})

test('whichever region a refreshed token comes to, the home of its key verifies it', async (context) => {
  const issuer = await openIssuer(context)
  const signer = await issuer.create('ES256', 'k1')
  const upstream = await openCounting(context)
  const folder = await temporaryFolder(context)
  const names = ['eu', 'us']
  const ports = await Promise.all(names.map(freePort))
  const regions = Object.fromEntries(names.map((name, at) => [name, `http://127.0.0.1:${ports[at]}`]))
  const gateways = await Promise.all(
    names.map((self, at) =>
      startGateway(context, folder, {
        store: `${folder}/${self}.db`,
        port: ports[at] ?? 0,
        config: {
          upstream: upstream.url,
          routes: [rule],
          jwks: jwksOf(issuer),
          region: { self, regions, secret: 'a secret of two regions, long enough' },
        },
      }),
    ),
  )
  const keys = Array.from({ length: 8 }, (_, at) => `key-${at}`)
  for (const key of keys) {
    for (const [at, gateway] of gateways.entries()) {
      const answer = await gateway.ask({ key, headers: { authorization: `Bearer ${await signer.token()}` } })
      assert.deepEqual([answer.status, answer.body, answer.replayed], [201, '{"got":12}', at > 0], key)
      const forged = await gateway.ask({
        key,
        headers: { authorization: `Bearer ${await signer.token({ aud: 'x' })}` },
      })
      assert.equal(forged.problem, 'credential-changed')
    }
  }
  assert.equal(upstream.heads, keys.length)
})
