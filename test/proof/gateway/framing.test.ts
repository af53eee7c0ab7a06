import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import {
  askBytes,
  assertReadAlike,
  chunked,
  type Framing,
  framingCases,
  framings,
  SMUGGLED,
} from '../../support/gateway/framing.ts'
import { findProxy, type ProxyKind, proxyKinds, startProxy } from '../../support/gateway/proxies.ts'
import { openCounting, openGateway, things } from '../../support/gateway/world.ts'

/** Ways to say it that some readers take and others do not: the classes of known request smuggling. */
const disputed: readonly Framing[] = [
  ...[
    ['a length with a sign', 'Content-Length: +5'],
    ['a length below zero', 'Content-Length: -1'],
    ['a length in hexadecimal', 'Content-Length: 0x5'],
    ['a length past all numbers', 'Content-Length: 99999999999999999999'],
    ['a length of two words', 'Content-Length: 5 5'],
    ['a list of lengths', 'Content-Length: 5, 5'],
    ['a length without a number', 'Content-Length:'],
    ['a space before the colon', 'Content-Length : 5'],
    ['a name with a tab', '\tContent-Length: 5'],
  ].map(([name = '', header = '']) => ({ name, headers: [header], wire: `hello${SMUGGLED}`, body: null })),
  ...[
    ['a coding that only ends like chunks', 'Transfer-Encoding: xchunked'],
    ['chunks with a parameter', 'Transfer-Encoding: chunked;q=1'],
    ['chunks after the identity', 'Transfer-Encoding: identity, chunked'],
    ['chunks in quotes', 'Transfer-Encoding: "chunked"'],
    ['chunks after a vertical tab', 'Transfer-Encoding: \vchunked'],
    ['chunks and a byte of zero', 'Transfer-Encoding: chunked\0'],
    ['chunks on a folded line', 'Transfer-Encoding:\r\n chunked'],
    ['chunks with a space before the colon', 'Transfer-Encoding : chunked'],
  ].map(([name = '', header = '']) => ({ name, headers: [header], wire: `0\r\n\r\n${SMUGGLED}`, body: null })),
  {
    name: 'chunks, declared on two lines',
    headers: ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'],
    wire: `0\r\n\r\n${SMUGGLED}`,
    body: null,
  },
  {
    name: 'a header that ends with a bare carriage return',
    headers: ['X-One: 1\rTransfer-Encoding: chunked'],
    wire: SMUGGLED,
    body: null,
  },
  {
    name: 'a header that ends with a bare line feed',
    headers: ['X-One: 1\nTransfer-Encoding: chunked'],
    wire: chunked('{}'),
    body: null,
  },
  ...[
    ['chunks with a sign', '+2\r\n{}\r\n0\r\n\r\n'],
    ['chunks with a prefix', '0x2\r\n{}\r\n0\r\n\r\n'],
    ['chunks past all numbers', 'fffffffffffffffff\r\n{}\r\n0\r\n\r\n'],
    ['chunks whose size ends with a bare line feed', '2\n{}\r\n0\r\n\r\n'],
    ['chunks longer than they say', '1\r\n{}\r\n0\r\n\r\n'],
  ].map(([name = '', wire = '']) => ({ name, headers: ['Transfer-Encoding: chunked'], wire, body: null, late: true })),
  {
    name: 'chunks with an extension',
    headers: ['Transfer-Encoding: chunked'],
    wire: `2;name="value"\r\n{}\r\n0\r\n\r\n`,
    body: '{}',
  },
  {
    name: 'chunks with a length in the trailer',
    headers: ['Transfer-Encoding: chunked', 'Trailer: Content-Length'],
    wire: `2\r\n{}\r\n0\r\nContent-Length: 40\r\nX-Smuggled: 1\r\n\r\n`,
    body: '{}',
    late: true,
  },
]

const programs = new Map<ProxyKind, string | null>()
for (const kind of proxyKinds) programs.set(kind, await findProxy(kind))

// Each waits for its sockets most of the time.
suite('framing', { concurrency: true }, () => {
  for (const kind of proxyKinds) {
    const program = programs.get(kind) ?? null
    const options = program === null ? { skip: `${kind} is not installed` } : {}
    test(
      `${kind} behind the gateway reads every request as its client means it, or none at all`,
      options,
      async (context) => {
        const service = await openCounting(context)
        const world = await openGateway(context, await startProxy(context, kind, program ?? '', service.port))
        let cases = 0
        for (const one of framingCases([...framings, ...disputed])) {
          await assertReadAlike(world, service, one)
          cases++
        }
        assert.ok(cases >= 1_000, String(cases))
        context.diagnostic(`${kind}: ${cases} cases, ${service.seen.length} requests at the service`)
      },
    )
  }

  test('a body that can never end is given up when its time is over, and no upstream gets it whole', async (context) => {
    const service = await openCounting(context)
    const world = await openGateway(context, service.url, [things], { timeouts: { idleMs: 500, bodyMs: 500 } })
    for (const path of ['/things', '/others']) {
      const head = [
        `POST ${path} HTTP/1.1`,
        'Host: x',
        'Connection: Upgrade',
        'Upgrade: h2c',
        'Transfer-Encoding: chunked',
        'Idempotency-Key: never',
      ]
      assert.match(
        await askBytes(world.port, `${head.join('\r\n')}\r\n\r\n1\r\n{}\r\n0\r\n\r\n`),
        /^HTTP\/1\.1 [45]\d\d /,
      )
    }
    assert.equal(service.seen.length, 0)
  })

  test('so does a service without a proxy, in the disputed cases as well', async (context) => {
    const service = await openCounting(context)
    const world = await openGateway(context, service.url)
    for (const one of framingCases(disputed)) await assertReadAlike(world, service, one)
  })
})
