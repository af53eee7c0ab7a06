import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readRegionToken, regionToken } from './token.ts'

const secret = 's'.repeat(32)
const identity = { tenant: 'acme', caller: 'ann.of:eu', operation: 'POST /things', key: 'k' }
const passage = { from: 'eu', to: 'us', method: 'POST', target: '/things?a=1', identity, content: 'c' }
const seen = { self: 'us', method: 'POST', target: '/things?a=1', operation: 'POST /things', key: 'k', content: 'c' }
const NOW = 1_000_000_000

test('a token has its caller, and only what its region has signed', () => {
  const token = regionToken(secret, NOW, passage)
  const { nonce: _nonce, ...who } = readRegionToken(secret, NOW, token, seen) ?? { nonce: '' }
  assert.deepEqual(who, { tenant: 'acme', caller: 'ann.of:eu', from: 'eu' })
  assert.notEqual(regionToken(secret, NOW, passage), token, 'no two are equal')
  assert.equal(readRegionToken('t'.repeat(32), NOW, token, seen), null)
  for (const other of [
    { self: 'ap' },
    { method: 'PUT' },
    { target: '/things' },
    { operation: 'x' },
    { key: 'l' },
    { content: 'd' },
  ]) {
    assert.equal(readRegionToken(secret, NOW, token, { ...seen, ...other }), null, JSON.stringify(other))
  }
  const parts = token.split('.')
  for (let at = 0; at < parts.length; at++) {
    const forged = parts.map((part, index) => (index === at ? `A${part}` : part)).join('.')
    assert.equal(readRegionToken(secret, NOW, forged, seen), null, `part ${at}`)
  }
  for (const odd of ['', '.', 'v2', `${token}.x`]) assert.equal(readRegionToken(secret, NOW, odd, seen), null)
})

test('a token is good for the time of its way, in both directions of two clocks', () => {
  const token = regionToken(secret, NOW, passage)
  assert.notEqual(readRegionToken(secret, NOW + 110_000, token, seen), null)
  assert.notEqual(readRegionToken(secret, NOW - 110_000, token, seen), null)
  assert.equal(readRegionToken(secret, NOW + 130_000, token, seen), null)
})
