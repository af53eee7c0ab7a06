import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { addressKey, clientKey } from './addresses.ts'

test('an IPv4 address counts for itself, an IPv6 address for its /64', () => {
  for (const [address, key] of Object.entries({
    '10.1.2.3': '10.1.2.3',
    '::ffff:10.1.2.3': '10.1.2.3',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2',
    '2001:DB8:0001:2::9': '2001:db8:1:2',
    '2001:db8::1': '2001:db8:0:0',
    '::1': '0:0:0:0',
    'fe80::1%eth0': 'fe80:0:0:0',
    '': '',
  })) {
    assert.equal(addressKey(address), key, address)
  }
})

test('a forwarded address counts where it is trusted: the one that the nearest proxy wrote', () => {
  const message = (forwarded?: string) =>
    ({
      socket: { remoteAddress: '10.0.0.1' },
      headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
    }) as unknown as IncomingMessage
  assert.equal(clientKey(message('6.6.6.6, 7.7.7.7'), true), '7.7.7.7')
  assert.equal(clientKey(message('6.6.6.6, 7.7.7.7'), false), '10.0.0.1')
  assert.equal(clientKey(message(), true), '10.0.0.1')
  assert.equal(clientKey(message('6.6.6.6, '), true), '10.0.0.1')
  assert.equal(clientKey(message('x'.repeat(1_000)), true), '10.0.0.1')
})
