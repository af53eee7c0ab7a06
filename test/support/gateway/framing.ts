import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Counting, World } from './world.ts'

/** One way to say where a body ends, and the bytes that follow the head. */
export interface Framing {
  readonly name: string
  readonly headers: readonly string[]
  readonly wire: string
  /** The body as the client means it; null where two readers could disagree, so that only a refusal is right. */
  readonly body: string | null
  /** What is wrong with it is not in its head. */
  readonly late?: boolean
}

export const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n'
export const chunked = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`

export const framings: readonly Framing[] = [
  { name: 'no body', headers: [], wire: '', body: '' },
  { name: 'an empty body', headers: ['Content-Length: 0'], wire: '', body: '' },
  { name: 'a length', headers: [`Content-Length: ${SMUGGLED.length}`], wire: SMUGGLED, body: SMUGGLED },
  { name: 'chunks', headers: ['Transfer-Encoding: chunked'], wire: chunked(SMUGGLED), body: SMUGGLED },
  { name: 'chunks, shouted', headers: ['transfer-encoding: CHUNKED'], wire: chunked('{}'), body: '{}' },
  { name: 'a coding before chunks', headers: ['Transfer-Encoding: gzip, chunked'], wire: chunked('{}'), body: null },
  { name: 'a coding alone', headers: ['Transfer-Encoding: gzip'], wire: '', body: null },
  { name: 'chunks twice', headers: ['Transfer-Encoding: chunked, chunked'], wire: chunked('{}'), body: null },
  {
    name: 'a length and chunks',
    headers: ['Content-Length: 5', 'Transfer-Encoding: chunked'],
    wire: `0\r\n\r\n${SMUGGLED}`,
    body: null,
  },
  {
    name: 'two lengths',
    headers: ['Content-Length: 0', `Content-Length: ${SMUGGLED.length}`],
    wire: SMUGGLED,
    body: null,
  },
  { name: 'two hosts', headers: ['Host: y'], wire: '', body: null },
]

const connections: Readonly<Record<string, readonly string[]>> = {
  'kept alive': ['Connection: keep-alive'],
  closed: ['Connection: close'],
  upgraded: [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZQ==',
  ],
  'upgraded to h2c': ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'],
  'with a length of its own': ['Connection: keep-alive, Content-Length, Host'],
}

const methods = ['GET', 'POST', 'DELETE', 'OPTIONS'] as const
const versions = ['1.1', '1.0'] as const

/** One request as bytes, and what it means. */
export interface FramingCase {
  readonly what: string
  readonly number: number
  readonly method: string
  readonly target: string
  readonly key: string
  readonly bytes: string
  readonly body: string | null
}

/** Every framing × method × version × connection, on a protected and on an unprotected path in turn. */
export function* framingCases(of: readonly Framing[] = framings): Generator<FramingCase> {
  let number = 0
  for (const method of methods) {
    for (const version of versions) {
      for (const [kept, connection] of Object.entries(connections)) {
        for (const { name, headers, wire, body, late = false } of of) {
          // Node reads no further after an upgrade that was declined: only the time limit for bodies ends such a request.
          if (late && kept.startsWith('upgraded')) continue
          number++
          const target = `${number % 2 === 0 ? '/things' : '/others'}?${number}`
          const key = `framing-${number}`
          const head = [`${method} ${target} HTTP/${version}`, 'Host: x', `Idempotency-Key: ${key}`]
          const bytes = `${[...head, ...connection, ...headers].join('\r\n')}\r\n\r\n${wire}`
          yield { what: `${method} HTTP/${version}, ${name}, ${kept}`, number, method, target, key, bytes, body }
        }
      }
    }
  }
}

/** Sends bytes, and waits for an answer's head or the end of the connection. */
export async function askBytes(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  let text = ''
  socket.on('data', (chunk) => (text += chunk.toString('latin1')))
  socket.write(bytes, 'latin1')
  const closed = once(socket, 'close')
  while (!text.includes('\r\n\r\n') && !socket.destroyed) await Promise.race([once(socket, 'data'), closed])
  socket.destroy()
  return text
}

/** The upstream reads the request as its client means it, or none at all; and after it the next one, as it is. */
export async function assertReadAlike(
  world: World,
  upstream: Counting,
  { what, number, method, target, key, bytes, body }: FramingCase,
): Promise<void> {
  const before = upstream.seen.length
  const answer = await askBytes(world.port, bytes)

  // The next request gets a pooled connection: nothing of the previous one may precede its response.
  const mine = `mine-${number}`
  const next = await world.ask({ path: `/next/${number}`, key: mine, headers: { cookie: mine }, body: `"${mine}"` })
  assert.equal(next.status, 201, what)
  const seen = upstream.seen.slice(before)
  assert.deepEqual(
    seen.filter(({ url }) => url !== target).map((one) => [one.url, one.headers.cookie, one.body]),
    [[`/next/${number}`, mine, `"${mine}"`]],
    what,
  )
  const own = seen.filter(({ url }) => url === target)
  // A body that is only forwarded is cut where it turns out to be wrong, so that its upstream never has it whole.
  const refused = answer === '' || /^HTTP\/1\.1 (400|502) /.test(answer)
  if (body === null) assert.ok(refused, `${what}: ${answer.slice(0, 100)}`)
  assert.equal(own.length, refused ? 0 : 1, `${what}: ${answer.slice(0, 100)}`)
  if (own[0] === undefined) return
  const { headers } = own[0]
  assert.deepEqual(
    [own[0].method, own[0].body, headers.host, headers['idempotency-key']],
    [method, body, 'x', key],
    what,
  )
}
