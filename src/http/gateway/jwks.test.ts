import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { isOnceError } from '../../ledger/core/errors.ts'
import { checkGatewayConfig } from './check.ts'
import { chooseKey, readKey, type SigningKey } from './jwk.ts'
import { createKeySet } from './jwks.ts'
import { gatewayLimits } from './limits.ts'

const jwkOf = (type: 'ed25519' | 'x25519') => generateKeyPairSync(type as 'ed25519').publicKey.export({ format: 'jwk' })
const ecKey = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve }).publicKey.export({ format: 'jwk' })
const rsaKey = (modulusLength: number) =>
  generateKeyPairSync('rsa', { modulusLength }).publicKey.export({ format: 'jwk' })

const ed = jwkOf('ed25519')
const named = (kid: string) => readKey({ ...ed, kid }) as SigningKey

/** A set whose keys, faults and clock are the test's. */
function createWorld() {
  const errors: unknown[] = []
  let nowMs = 0
  let loads = 0
  const world = {
    errors,
    keys: [named('a')] as readonly SigningKey[] | null,
    /** Every load waits for it. */
    gate: Promise.resolve(),
    get loads() {
      return loads
    },
    advance: (ms: number) => void (nowMs += ms),
    find: async (kid: string) => (await set.find(kid, 'EdDSA'))?.kid ?? null,
  }
  const set = createKeySet({
    monotonicMs: () => nowMs,
    onError: (error) => void errors.push(error),
    async load() {
      loads++
      await world.gate
      if (world.keys === null) throw new Error('down')
      return world.keys
    },
  })
  return world
}

test('keys are loaded on the first request for one, once for all concurrent requests', async () => {
  const world = createWorld()
  assert.equal(world.loads, 0)
  assert.deepEqual(await Promise.all(['a', 'b', 'a'].map(world.find)), ['a', null, 'a'])
  assert.equal(world.loads, 1)
})

test('an unknown name loads them again, but not more often than after a pause; a withdrawn key is gone then', async () => {
  const world = createWorld()
  await world.find('a')
  world.keys = [named('b')]
  for (let times = 0; times < 100; times++) assert.equal(await world.find('b'), null)
  assert.equal(world.loads, 1)
  world.advance(gatewayLimits.jwksPauseMs)
  assert.equal(await world.find('a'), 'a', 'a known one needs no load')
  assert.deepEqual([await world.find('b'), world.loads], ['b', 2])
  assert.equal(await world.find('a'), null)
})

test('old keys are used while they are loaded again, and not at all when that has failed for long', async () => {
  const world = createWorld()
  await world.find('a')
  world.keys = null
  world.advance(gatewayLimits.jwksFreshMs)
  const gate = Promise.withResolvers<void>()
  world.gate = gate.promise
  assert.deepEqual([await world.find('a'), world.loads], ['a', 2], 'no request waits for it')
  gate.resolve()
  world.advance(gatewayLimits.jwksMostMs - gatewayLimits.jwksFreshMs - 1)
  assert.equal(await world.find('a'), 'a')
  world.advance(1)
  assert.equal(await world.find('a'), null)
  assert.ok(world.errors.length > 0, 'the reason is reported')
  world.keys = [named('a')]
  world.advance(gatewayLimits.jwksPauseMs)
  assert.equal(await world.find('a'), 'a')
})

test('only public keys that signatures are made for are keys', () => {
  const good = [ed, { ...ed, use: 'sig', key_ops: ['verify'], alg: 'EdDSA' }, ecKey('P-256'), rsaKey(2_048)]
  for (const jwk of good) assert.notEqual(readKey(jwk), null, JSON.stringify(jwk))
  const bad = [
    null,
    [],
    {},
    { ...ed, use: 'enc' },
    { ...ed, key_ops: ['sign'] },
    { ...ed, alg: 'RS256' },
    { ...ed, alg: 'HS256' },
    { ...ed, alg: '__proto__' },
    { ...ed, kid: 1 },
    { ...ed, x: 'AA' },
    jwkOf('x25519'),
    ecKey('P-384'),
    rsaKey(1_024),
    { kty: 'oct', k: 'c2VjcmV0' },
    JSON.parse('{"__proto__":{"kty":"OKP"}}') as unknown,
  ]
  for (const jwk of bad) assert.equal(readKey(jwk), null, JSON.stringify(jwk))
})

test('what is wrong with the place of keys is named', () => {
  const faultsOf = (jwks: unknown) => {
    try {
      checkGatewayConfig({ upstream: 'http://127.0.0.1:3000', jwks })
      return []
    } catch (error) {
      assert.ok(isOnceError(error, 'bad_option'))
      return (error.details['faults'] as { path: string; what: string }[]).map(({ path, what }) => `${path} ${what}`)
    }
  }
  const who = { issuer: 'https://id', audience: 'api' }
  for (const good of [
    { ...who, url: 'https://id.example.com/keys?p=1' },
    { ...who, url: 'http://127.0.0.1:8080/keys' },
    { ...who, url: 'http://[::1]/keys', audience: ['a', 'b'] },
    { ...who, file: '/keys.json', audience: null },
    { ...who, keys: [ed] },
  ]) {
    assert.deepEqual(faultsOf(good), [])
  }
  for (const [jwks, ...wanted] of [
    [{ url: 'https://id' }, 'jwks.issuer is missing', 'jwks.audience is missing'],
    [who, 'jwks needs one of'],
    [{ ...who, url: 'https://id', file: 'x' }, 'jwks needs one of'],
    [{ ...who, url: 'http://id.example.com/keys' }, 'jwks.url is not https'],
    [{ ...who, url: 'https://me:secret@id/keys' }, 'jwks.url has a credential'],
    [{ ...who, url: 'file:///keys' }, 'jwks.url is not an http'],
    [{ ...who, file: 'x', ca: '-----BEGIN CERTIFICATE-----' }, 'jwks.ca is for keys'],
    [{ ...who, audience: [1], keys: [ed] }, 'jwks.audience is neither'],
    [{ ...who, keys: [ed, { ...ed, d: 'x' }] }, 'jwks.keys[1] holds a secret'],
    [{ ...who, keys: [{ kty: 'oct', k: 'x' }] }, 'jwks.keys[0] holds a secret'],
    [{ ...who, keys: [rsaKey(1_024)] }, 'jwks.keys[0] is not a public key'],
  ] as const) {
    const faults = faultsOf(jwks)
    assert.equal(faults.length, wanted.length, faults.join('; '))
    for (const [at, start] of wanted.entries()) assert.ok(faults[at]?.startsWith(start), `${faults[at]} : ${start}`)
  }
})

test('a key is used for algorithms of its own kind only, and not at all where several match', () => {
  const rsa = rsaKey(2_048)
  const any = readKey(rsa) as SigningKey
  const one = readKey({ ...rsa, kid: 'a', alg: 'RS256' }) as SigningKey
  assert.equal(chooseKey([any], null, 'RS256'), any)
  assert.equal(chooseKey([any], null, 'PS256'), any)
  for (const algorithm of ['ES256', 'EdDSA', 'none', 'HS256', '']) assert.equal(chooseKey([any], null, algorithm), null)
  assert.equal(chooseKey([one], null, 'PS256'), null)
  assert.equal(chooseKey([any, one], null, 'RS256'), null)
  assert.equal(chooseKey([any, one], 'a', 'RS256'), one)
  assert.equal(chooseKey([any, one], 'b', 'RS256'), null)
})
