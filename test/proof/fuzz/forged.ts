import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import fc from 'fast-check'
import { createConsoleAccess } from '../../../src/admin/console/access.ts'
import type { ConsoleRequest } from '../../../src/admin/console/exchange.ts'
import { createSessions } from '../../../src/admin/console/session.ts'
import { createMemorySessions } from '../../../src/admin/core/session-storage.ts'
import { chooseKey, readKey, type SigningKey } from '../../../src/http/gateway/jwk.ts'
import { type FindKey, verifyBearer } from '../../../src/http/gateway/jwt.ts'
import { createRegionRouter } from '../../../src/http/region/region.ts'
import { LONGEST_WAY_MS, regionToken } from '../../../src/http/region/token.ts'
import { INHERITED, inherited, oddObject } from './odd-names.ts'

/** Credentials forged in every way are refused. Genuine ones are accepted throughout. */
export async function throwForged(count: number, seed: number): Promise<Readonly<Record<string, number>>> {
  await throwTokens(count, seed)
  throwRegionTokens(count, seed)
  await throwSessions(count, seed)
  return { tokens: count, regionTokens: count, sessions: count }
}

/** After so many forged ones a genuine one is shown, so that the door is known to be a door. */
const GENUINE_EVERY = 1_000

// --- Bearer tokens -----------------------------------------------------------------------------------------------------

const part = (text: string | Buffer) => Buffer.from(text).toString('base64url')
const NOW_MS = 1_800_000_000_000
const expected = { issuer: 'https://id', audiences: ['api'] }
const claims = { iss: 'https://id', sub: 'ann', aud: 'api', exp: NOW_MS / 1_000 + 60 }

function createKeys() {
  const es = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ed = generateKeyPairSync('ed25519')
  const keys = [
    readKey({ ...es.publicKey.export({ format: 'jwk' }), kid: 'es' }),
    readKey({ ...ed.publicKey.export({ format: 'jwk' }), kid: 'ed' }),
  ].filter((key): key is SigningKey => key !== null)
  const find: FindKey = (kid, algorithm) => Promise.resolve(chooseKey(keys, kid, algorithm))
  return { es, ed, find }
}

function signed(head: string, payload: string, hash: string | null, key: KeyObject): string {
  const content = `${part(head)}.${part(payload)}`
  return `${content}.${part(sign(hash, Buffer.from(content), { key, dsaEncoding: 'ieee-p1363' }))}`
}

const names = fc.oneof(inherited, fc.constantFrom('es', 'ed', '', 'none', 'HS256', 'RS256', 'ES256', 'EdDSA', 'ES384'))
const heads = fc.oneof(
  fc.constantFrom('{"alg":"ES256","kid":"es"}', '{"alg":"EdDSA","kid":"ed"}', '{"alg":"ES256"}'),
  fc.record({ alg: names, kid: names }).map((head) => JSON.stringify(head)),
  oddObject,
  fc.jsonValue().map((value) => JSON.stringify(value)),
)
const badPayloads = fc.oneof(
  fc
    .record({
      iss: fc.constantFrom('https://id', 'https://id/', '', null, ['https://id']),
      sub: fc.constantFrom('ann', '', 7, null, ...INHERITED),
      aud: fc.constantFrom('api', 'other', null, [], ['api'], { 0: 'api' }),
      exp: fc.constantFrom(claims.exp, String(claims.exp), 0, -1, null, NOW_MS / 1_000),
    })
    .filter(({ iss, sub, aud, exp }) => {
      const good = iss === claims.iss && typeof sub === 'string' && sub !== '' && exp === claims.exp
      return !(good && (aud === 'api' || JSON.stringify(aud) === '["api"]'))
    })
    .map((payload) => JSON.stringify(payload)),
  oddObject,
  fc.jsonValue().map((value) => JSON.stringify(value)),
)

async function throwTokens(count: number, seed: number): Promise<void> {
  const { es, ed, find } = createKeys()
  const stranger = generateKeyPairSync('ed25519').privateKey
  const spki = es.publicKey.export({ format: 'pem', type: 'spki' })
  const goodHead = '{"alg":"EdDSA","kid":"ed"}'
  const genuine = signed(goodHead, JSON.stringify(claims), null, ed.privateKey)
  const good = JSON.stringify(claims)
  const forged = fc.oneof(
    // Signed by the right key, with a bad payload.
    badPayloads.map((payload) => signed(goodHead, payload, null, ed.privateKey)),
    badPayloads.map((payload) => signed('{"alg":"ES256","kid":"es"}', payload, 'sha256', es.privateKey)),
    // A good payload, signed by a stranger or with a public value.
    heads.map((head) => signed(head, good, null, stranger)),
    heads.map((head) => {
      const content = `${part(head)}.${part(good)}`
      return `${content}.${createHmac('sha256', spki).update(content).digest('base64url')}`
    }),
    fc
      .tuple(heads, fc.uint8Array({ maxLength: 80 }))
      .map(([head, bytes]) => `${part(head)}.${part(good)}.${part(Buffer.from(bytes))}`),
    // A good one with one character changed, taken away or added.
    fc
      .tuple(fc.nat(genuine.length - 1), fc.constantFrom('', '.', 'A', 'AA', '_', '=', '\u0000'))
      .map(([at, other]) => genuine.slice(0, at) + other + genuine.slice(at + 1))
      .filter((token) => !sameToken(token, genuine)),
    fc.string({ unit: 'binary', maxLength: 60 }),
  )
  const verify = (token: string) => verifyBearer(`Bearer ${token}`, find, expected, NOW_MS)
  let at = 0
  for (const token of fc.sample(forged, { seed, numRuns: count })) {
    assert.equal(await verify(token), null, `seed ${seed}: ${token}`)
    if (at++ % GENUINE_EVERY === 0) assert.deepEqual(await verify(genuine), { issuer: 'https://id', subject: 'ann' })
  }
}

/** The last character of a part may have bits that stand for nothing. */
function sameToken(one: string, other: string): boolean {
  const bytes = (token: string) => token.split('.').map((each) => Buffer.from(each, 'base64url').toString('hex'))
  const [head, payload] = [one, other].map((token) => token.split('.').slice(0, 2).join('.'))
  return head === payload && bytes(one).join() === bytes(other).join()
}

// --- Tokens between regions ----------------------------------------------------------------------------------------------

function throwRegionTokens(count: number, seed: number): void {
  const secret = 'a secret of thirty-two characters'
  const options = { regions: { eu: 'http://127.0.0.1:1', us: 'http://127.0.0.1:2' }, secret }
  using region = createRegionRouter({ ...options, self: 'eu' })
  const identity = { tenant: 'acme', caller: 'ann', operation: 'POST /things', key: 'k' }
  const request = { method: 'POST', target: '/things', operation: 'POST /things', key: 'k', content: 'digest' }
  const passage = { from: 'us', to: 'eu', method: 'POST', target: '/things', identity, content: 'digest' }
  const fresh = () => regionToken(secret, Date.now(), passage)
  const texts = fc.oneof(
    inherited,
    fc.string({ maxLength: 20 }),
    fc.constantFrom('eu', 'us', 'v2', '0', 'NaN', 'Infinity', ''),
  )
  const forged = fc.oneof(
    // One of its parts, or of what the request says, is another.
    fc.tuple(fc.nat(7), texts).map(([at, text]) => {
      const token = fresh()
      const parts = token.split('.')
      if (parts[at] === text) return null
      parts[at] = text
      return { token: parts.join('.'), request }
    }),
    fc
      .tuple(fc.constantFrom('method', 'target', 'operation', 'key', 'content'), texts)
      .map(([member, text]) => ({ token: fresh(), request: { ...request, [member]: text } })),
    // Signed by a stranger, for another region, or at another time.
    texts.map((text) => ({ token: regionToken(`${secret}${text}x`, Date.now(), passage), request })),
    texts
      .filter((text) => text !== 'eu')
      .map((to) => ({ token: regionToken(secret, Date.now(), { ...passage, to }), request })),
    fc
      .constantFrom(-LONGEST_WAY_MS - 60_000, LONGEST_WAY_MS + 60_000, Number.NaN, Number.POSITIVE_INFINITY)
      .map((ms) => ({ token: regionToken(secret, Date.now() + ms, passage), request })),
    // Seen before, which the first look at it makes it.
    fc.constant('again' as const),
    texts.map((token) => ({ token, request })),
  )
  for (const one of fc.sample(forged, { seed, numRuns: count })) {
    if (one === null) continue
    if (one === 'again') {
      const token = fresh()
      assert.deepEqual(region.arrived(token, request)?.caller, 'ann')
      assert.equal(region.arrived(token, request), null, 'a copy is refused')
    } else assert.equal(region.arrived(one.token, one.request), null, `seed ${seed}: ${JSON.stringify(one)}`)
  }
}

// --- Sessions of the console ---------------------------------------------------------------------------------------------

const OPERATOR = 'operator-token-of-32-characters!'
const VIEWER = 'viewer-token-of-32-characters!!!'

function requestWith(headers: ConsoleRequest['headers']): ConsoleRequest {
  return {
    method: 'GET',
    url: '/api/console/records',
    headers,
    remoteAddress: '127.0.0.1',
    clientAddress: '127.0.0.1',
    isEncrypted: false,
    body: () => Promise.resolve(null),
  }
}

async function throwSessions(count: number, seed: number): Promise<void> {
  const shelf = createMemorySessions()
  const sessions = createSessions(createConsoleAccess({ operator: OPERATOR, viewer: VIEWER, chosen: true }), shelf, '')
  /** Of before the token of the operator was exchanged: its sessions are on the same shelf. */
  const before = createSessions(
    createConsoleAccess({ operator: `${OPERATOR}!`, viewer: VIEWER, chosen: true }),
    shelf,
    '',
  )
  const open = async (of: typeof sessions, token: string) => {
    const person = await of.signIn(requestWith({}), token, 'ann')
    const [cookie = ''] = String(person?.headers[0]?.[1]).split(';')
    return cookie
  }
  const genuine = await open(sessions, OPERATOR)
  const exchanged = await open(before, `${OPERATOR}!`)
  const ended = await open(sessions, OPERATOR)
  await sessions.signOut(requestWith({ cookie: ended }))
  const id = genuine.slice(genuine.indexOf('=') + 1)
  const name = genuine.slice(0, genuine.indexOf('='))
  const values = fc.oneof(
    inherited,
    fc.string({ maxLength: 50 }),
    fc.nat(id.length - 1).map((at) => id.slice(0, at)),
    fc.nat(id.length - 1).map((at) => `${id.slice(0, at)}${id[at] === 'A' ? 'B' : 'A'}${id.slice(at + 1)}`),
    fc.constantFrom(`${id} `, `"${id}"`, id.toUpperCase(), encodeURIComponent(`${id}=`), `${id},${id}`),
    fc.constantFrom('operator', 'viewer', 'true', '1', 'null', OPERATOR),
  )
  const forged = fc.oneof(
    values.filter((value) => value !== id).map((value) => ({ cookie: `${name}=${value.replaceAll(';', '')}` })),
    fc.constantFrom(
      { cookie: exchanged },
      { cookie: ended },
      { cookie: `x${genuine}` },
      { cookie: `${name}=; ${genuine}` },
    ),
    fc.tuple(inherited, values).map(([other, value]) => ({ cookie: `${other}=${value}` })),
    fc
      .oneof(
        inherited,
        fc.string({ unit: 'binary', maxLength: 50 }),
        fc.nat(OPERATOR.length - 1).map((at) => OPERATOR.slice(0, at)),
        fc.constantFrom(
          'operator',
          'viewer',
          `${OPERATOR} `,
          `${OPERATOR}!`,
          OPERATOR.toUpperCase(),
          'undefined',
          'null',
        ),
      )
      .map((token) => ({ authorization: `Bearer ${token}` })),
  )
  let at = 0
  for (const headers of fc.sample(forged, { seed, numRuns: count })) {
    assert.equal(await sessions.personOf(requestWith(headers)), null, `seed ${seed}: ${JSON.stringify(headers)}`)
    if (at++ % GENUINE_EVERY === 0) {
      assert.equal((await sessions.personOf(requestWith({ cookie: genuine })))?.role, 'operator')
    }
  }
  assert.equal(
    await sessions.personOf(requestWith({ cookie: `${name}=${randomBytes(32).toString('base64url')}` })),
    null,
  )
}
