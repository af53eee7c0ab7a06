import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openCounting, openGateway, things } from '../../support/gateway/world.ts'
import { raw } from './wire.ts'

const head = (lines: readonly string[]) => [...lines, 'Host: x', '', ''].join('\r\n')

test('a header counts in the spelling with underscores, which many services read as the same', async (context) => {
  const upstream = await openCounting(context)
  const { port } = await openGateway(context, upstream.url, [{ ...things, method: 'DELETE' }])
  const lines = ['X_Forwarded_For: 6.6.6.6', 'X-Real_IP: 6.6.6.6', 'X_Forwarded-Proto: https', 'Transfer_Encoding: x']
  const first = await raw(port, head(['POST /others HTTP/1.1', ...lines, 'Content-Length: 0', 'Connection: close']))
  assert.match(first, /^HTTP\/1.1 201 /)
  const names = Object.keys(upstream.seen[0]?.headers ?? {})
  assert.deepEqual(
    names.filter((name) => name.includes('_')),
    [],
  )
  for (const name of ['X_HTTP_Method_Override', 'X-HTTP_Method', 'x_method_override']) {
    const asked = ['POST /things HTTP/1.1', `${name}: DELETE`, 'Content-Length: 0', 'Connection: close']
    assert.match(await raw(port, head(asked)), /^HTTP\/1.1 400 [^]*idempotency-key-missing/, name)
  }
  assert.equal(upstream.heads, 1)
})

test('an offer of a WebSocket does not slip past a rule by asking for its method', async (context) => {
  const upstream = await openCounting(context)
  const { port } = await openGateway(context, upstream.url)
  const offer = ['GET /things HTTP/1.1', 'Upgrade: websocket', 'X-HTTP-Method-Override: POST']
  // Behind it, so that the connection ends whether the offer is taken up or not.
  const asked = head([...offer, 'Connection: Upgrade']) + head(['GET /end HTTP/1.1', 'Connection: close'])
  assert.match(await raw(port, asked), /^HTTP\/1.1 400 [^]*idempotency-key-missing/)
  assert.equal(upstream.seen.filter(({ url }) => url === '/things').length, 0)
})
