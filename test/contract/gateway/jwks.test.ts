import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import { base64url, exportSPKI, SignJWT } from 'jose'
import type { JwksConfig } from 'onceonly/gateway'
import OpenAI from 'openai'
import { createProxy } from '../../../tools/proxy/index.ts'
import {
  AUDIENCE,
  createSigner,
  EXTENSION,
  type Issuer,
  openIssuer,
  secondsFromNow,
} from '../../support/gateway/issuer.ts'
import { temporaryFolder } from '../../support/gateway/process.ts'
import { type Counting, openCounting, openGateway, things, type World } from '../../support/gateway/world.ts'

/** A rule as it is without a word about callers and replays. */
const { caller: _caller, replay: _replay, ...plain } = things

interface Verifying {
  readonly issuer: Issuer
  readonly upstream: Counting
  readonly world: World
  /** Sends under one key, with a token. */
  ask(token: string, more?: Readonly<Record<string, string>>): ReturnType<World['ask']>
}

async function openVerifying(context: TestContext, source: Partial<JwksConfig> = {}): Promise<Verifying> {
  const issuer = await openIssuer(context)
  const upstream = await openCounting(context)
  const place = 'keys' in source || 'file' in source ? {} : { url: issuer.url }
  const jwks = { issuer: issuer.issuer, audience: AUDIENCE, ...place, ...source } as JwksConfig
  const world = await openGateway(context, upstream.url, [plain], { jwks })
  const ask = (token: string, more = {}) => world.ask({ headers: { authorization: `Bearer ${token}`, ...more } })
  return { issuer, upstream, world, ask }
}

for (const algorithm of ['RS256', 'PS256', 'ES256', 'EdDSA']) {
  test(`a refreshed token of the same subject gets the stored answer (${algorithm})`, async (context) => {
    const { issuer, upstream, world, ask } = await openVerifying(context)
    const signer = await issuer.create(algorithm, 'k1')
    const token = await signer.token()
    const first = await ask(token)
    const refreshed = await ask(await signer.token())
    assert.deepEqual([refreshed.status, refreshed.body, refreshed.replayed], [201, first.body, true])
    assert.equal(refreshed.headers.get('onceonly-credentials'), null)
    assert.equal(upstream.heads, 1)
    assert.equal(issuer.requests, 1, 'keys are asked for once')
    const records = JSON.stringify(await world.ledger.list({}))
    for (const part of token.split('.')) assert.ok(!records.includes(part), 'nothing of a token is kept')
  })
}

test('the unchanged OpenAI SDK, which requests a new token before every attempt, gets its lost response', async (context) => {
  const issuer = await openIssuer(context)
  const signer = await issuer.create('ES256', 'k1')
  const upstream = await openCounting(context)
  const jwks = { issuer: issuer.issuer, audience: AUDIENCE, url: issuer.url }
  const world = await openGateway(context, upstream.url, [plain], { jwks })
  await using proxy = await createProxy({ targetPort: world.port })
  proxy.dropNextResponse({ when: (request) => request.includes('POST /things') })
  const sent: string[] = []
  const openai = new OpenAI({
    baseURL: `http://127.0.0.1:${proxy.port}`,
    maxRetries: 2,
    apiKey: async () => {
      const token = await signer.token()
      sent.push(token)
      return token
    },
  })
  const answer = await openai.post('/things', { body: { amount: 1 }, headers: { 'idempotency-key': 'once' } })
  assert.deepEqual(answer, { got: 12 })
  assert.equal(new Set(sent).size, 2, 'two tries, two tokens')
  assert.equal(upstream.heads, 1)
})

test('keys stand in the configuration or in a file just as well', async (context) => {
  const signer = await createSigner('EdDSA', 'k1')
  const file = join(await temporaryFolder(context), 'keys.json')
  await writeFile(file, JSON.stringify({ keys: [signer.jwk] }))
  for (const source of [{ keys: [signer.jwk] }, { file }]) {
    const { upstream, ask } = await openVerifying(context, source)
    await ask(await signer.token())
    assert.equal((await ask(await signer.token())).replayed, true)
    assert.equal(upstream.heads, 1)
  }
})

/** Tokens that prove nothing, by what is wrong with them. `rs` and `es` are keys of the issuer. */
async function badTokens(issuer: Issuer): Promise<Readonly<Record<string, string>>> {
  const rs = await issuer.create('RS256', 'rs')
  const es = await issuer.create('ES256', 'es')
  const stranger = await createSigner('RS256', 'rs')
  const good = await rs.token()
  const [head = '', payload = '', signature = ''] = good.split('.')
  const part = (value: unknown) => base64url.encode(JSON.stringify(value))
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>
  const spki = await exportSPKI(rs.publicKey)
  const byPublicKey = (secret: Uint8Array) =>
    new SignJWT({ ...claims, jti: 'confused' }).setProtectedHeader({ alg: 'HS256', kid: 'rs' }).sign(secret)
  return {
    'signed by a stranger under a known name': await stranger.token(),
    'of an unknown key': await rs.token({}, { kid: 'other' }),
    'without the name of one of several keys': await rs.token({ jti: 'a' }, { kid: undefined }).then(
      // Two keys of one kind: it could be either.
      async (token) => {
        await issuer.create('RS256', 'rs2')
        return token
      },
    ),
    'without a signature': `${part({ alg: 'none' })}.${part({ ...claims, jti: 'none' })}.`,
    'without a signature, and with something in its place': `${part({ alg: 'none', kid: 'rs' })}.${payload}.AA`,
    'signed with the public key as a secret': await byPublicKey(new TextEncoder().encode(spki)),
    'signed with the modulus as a secret': await byPublicKey(base64url.decode(rs.jwk.n ?? '')),
    'of an algorithm that its key does not name': `${part({ alg: 'PS256', kid: 'rs' })}.${payload}.${signature}`,
    'of a key of another kind': await es.token({}, { kid: 'rs' }),
    'with another payload': `${head}.${part({ ...claims, jti: 'other' })}.${signature}`,
    'with another head': `${part({ alg: 'RS256', kid: 'rs', typ: 'x' })}.${payload}.${signature}`,
    'that has ended': await rs.token({ exp: secondsFromNow(-1) }),
    'that never ends': await rs.token({ exp: undefined }),
    'that begins later': await rs.token({ nbf: secondsFromNow(600) }),
    'for another audience': await rs.token({ aud: 'https://other.example.com' }),
    'that is bound to a key of its holder': await rs.token({ cnf: { 'x5t#S256': 'x' } }),
    'without an audience': await rs.token({ aud: undefined }),
    'with an extension that must be understood': await rs.token({}, { crit: [EXTENSION], [EXTENSION]: 1 }),
    'with a prototype for a head': `${base64url.encode('{"__proto__":{"alg":"RS256","kid":"rs"}}')}.${payload}.${signature}`,
  }
}

test('a token that cannot be verified shows nothing, and nothing is forwarded for it', async (context) => {
  const { issuer, upstream, ask } = await openVerifying(context)
  const bad = await badTokens(issuer)
  const good = await createSigner('ES256', 'good')
  issuer.published = [...issuer.published, good.jwk]
  assert.equal((await ask(await good.token())).status, 201)
  for (const [what, token] of Object.entries(bad)) {
    const answer = await ask(token)
    assert.deepEqual([answer.status, answer.problem], [409, 'credential-changed'], `a token ${what}`)
  }
  assert.equal((await ask(await good.token())).replayed, true, 'the good one still does')
  assert.equal(upstream.heads, 1)
  assert.ok(issuer.requests <= 2, `invented names of keys are not asked for one by one: ${issuer.requests}`)
})

test('another issuer or subject is another caller, and so is a token without one', async (context) => {
  const { issuer, upstream, ask } = await openVerifying(context)
  const signer = await issuer.create('ES256', 'k1')
  for (const claims of [{}, { sub: 'bob' }, { iss: 'https://other.example.com' }, { sub: undefined }]) {
    assert.equal((await ask(await signer.token(claims))).replayed, false, JSON.stringify(claims))
  }
  assert.equal((await ask(await signer.token({ sub: undefined }))).problem, 'credential-changed')
  assert.equal(upstream.heads, 4)
})

test('one set of keys may sign for many issuers: a subject of another one is not the same', async (context) => {
  const issuer = await openIssuer(context)
  const signer = await issuer.create('ES256', 'k1')
  const upstream = await openCounting(context)
  const jwks = { issuer: issuer.issuer, audience: null, url: issuer.url }
  const world = await openGateway(context, upstream.url, [{ ...plain, caller: { claim: 'sub' } }], { jwks })
  const ask = async (claims: Readonly<Record<string, unknown>>) =>
    world.ask({ headers: { authorization: `Bearer ${await signer.token(claims)}` } })
  await ask({})
  assert.equal((await ask({ aud: undefined })).replayed, true, 'no audience is configured')
  assert.equal((await ask({ iss: 'https://other.example.com' })).problem, 'credential-changed')
  assert.equal(upstream.heads, 1)
})

test('a response to an unverified token is not shown to the subject it claims', async (context) => {
  const { issuer, upstream, ask } = await openVerifying(context)
  const signer = await issuer.create('ES256', 'k1')
  const forged = await (await createSigner('ES256', 'k1')).token()
  assert.equal((await ask(forged)).status, 201, 'the service looks at no tokens')
  assert.equal((await ask(await signer.token())).problem, 'credential-changed')
  assert.equal((await ask(forged)).replayed, true, 'its own credential is the same')
  assert.equal(upstream.heads, 1)
})

test('a verified token does not replace other credentials: a service may use one token for all its users', async (context) => {
  const { issuer, upstream, ask } = await openVerifying(context)
  const signer = await issuer.create('ES256', 'k1')
  await ask(await signer.token(), { 'x-user-token': 'ann' })
  assert.equal((await ask(await signer.token(), { 'x-user-token': 'eve' })).problem, 'credential-changed')
  assert.equal((await ask(await signer.token())).problem, 'credential-changed')
  assert.equal((await ask(await signer.token(), { 'x-user-token': 'ann' })).replayed, true)
  assert.equal(upstream.heads, 1)
})

test('the status of an operation is shown to a refreshed token, and to no other', async (context) => {
  const { issuer, world, ask } = await openVerifying(context)
  const signer = await issuer.create('ES256', 'k1')
  await ask(await signer.token())
  const [row] = (await world.ledger.list({})).rows
  const look = (token: string) =>
    world.ask({
      method: 'GET',
      path: `/.onceonly/operations/${row?.record.id}`,
      key: null,
      body: null,
      headers: { authorization: `Bearer ${token}` },
    })
  assert.equal((await look(await signer.token())).status, 200)
  assert.equal((await look(await signer.token({ exp: secondsFromNow(-1) }))).status, 404)
  assert.equal((await look(await (await createSigner('ES256', 'k1')).token())).status, 404)
})

test('keys that cannot be had leave a token unverified: one effect, and the same credential is answered', async (context) => {
  const errors: unknown[] = []
  context.mock.method(console, 'error', (error: unknown) => errors.push(error))
  for (const answer of ['redirect', 'error', 'no JSON', 'no keys', 'too many bytes'] as const) {
    const { issuer, upstream, ask } = await openVerifying(context)
    const signer = await issuer.create('ES256', 'k1')
    const keys = JSON.stringify({ keys: issuer.published })
    issuer.answer = (response) => {
      switch (answer) {
        case 'redirect':
          return response.writeHead(302, { location: issuer.url }).end()
        case 'error':
          return response.writeHead(500).end(keys)
        case 'no JSON':
          return response.end('<html>')
        case 'no keys':
          return response.end('{"keys":{"0":{}}}')
        case 'too many bytes':
          return response.end(keys + ' '.repeat(300_000))
      }
    }
    const token = await signer.token()
    assert.equal((await ask(token)).status, 201, answer)
    assert.equal((await ask(await signer.token())).problem, 'credential-changed', answer)
    assert.equal((await ask(token)).replayed, true, answer)
    assert.deepEqual([upstream.heads, issuer.requests], [1, 1], answer)
    assert.match(String(errors.at(-1)), /The keys at .* cannot be loaded/, answer)
  }
  assert.equal(errors.length, 5, 'each is reported once')
})
