import fc from 'fast-check'
import { inherited, oddObject } from './odd-names.ts'

/** Requests as bytes: most of them nearly right, because what is wrong in every way is refused by the first look. */
export interface RequestWords {
  readonly paths: readonly string[]
  /** Opens the door, so that what comes behind it is reached. */
  readonly authorization: string
  /** A body that would be accepted. */
  readonly body: object
}

/** Deeper than any reader goes; as text it is still small. */
const DEPTH_MOST = 20_000

const methods = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom('POST', 'POST', 'POST', 'PUT', 'PATCH', 'DELETE', 'GET') },
  fc.constantFrom('HEAD', 'OPTIONS', 'TRACE', 'CONNECT', 'post', 'P\0ST', ''),
)
const types = [
  'application/json',
  'application/json',
  'application/json; charset=utf-16',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'multipart/form-data',
  'text/plain',
  'application/json, text/plain',
  ';;=',
]
const numbers = ['1e400', '-0', '0.1e-400', '123456789012345678901234567890', '01', '-', '1.', '0x10', 'NaN']
const texts = ['"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"\u0000"', '"\\x"', '"', '"\\uD83D\\uDE00"']

const nested = fc.tuple(fc.constantFrom('[', '{"a":', '[{"a":['), fc.integer({ min: 1, max: DEPTH_MOST }))

function jsonText(body: object): fc.Arbitrary<string> {
  const good = JSON.stringify(body)
  const names = Object.keys(body)
  const value = fc.oneof(
    fc.constantFrom(...numbers, ...texts, 'null', 'true', '[]', '{}'),
    fc.jsonValue().map((each) => JSON.stringify(each)),
    oddObject,
    inherited.map((name) => `"${name}"`),
    nested.map(([open, depth]) => open.repeat(depth)),
  )
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant(good) },
    { weight: 3, arbitrary: fc.tuple(fc.constantFrom(...names), value).map(([name, text]) => `{"${name}":${text}}`) },
    // The same member twice, and what JavaScript treats as more than a name.
    { weight: 2, arbitrary: value.map((text) => `${good.slice(0, -1)},"${names[0] ?? 'a'}":${text}}`) },
    {
      weight: 2,
      arbitrary: fc.tuple(inherited, value).map(([name, text]) => `${good.slice(0, -1)},"${name}":${text}}`),
    },
    { weight: 2, arbitrary: fc.nat(good.length).map((length) => good.slice(0, length)) },
    { weight: 2, arbitrary: value },
  )
}

function bodyBytes(body: object): fc.Arbitrary<Buffer> {
  return fc.oneof(
    { weight: 6, arbitrary: jsonText(body).map((text) => Buffer.from(text)) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)) },
    { weight: 1, arbitrary: fc.constant(Buffer.alloc(0)) },
    {
      weight: 1,
      arbitrary: fc.string({ unit: 'binary', maxLength: 60 }).map((text) => Buffer.from(`--x\r\n${text}\r\n--x--`)),
    },
  )
}

/** Bytes of a line: mostly letters, because the HTTP parser refuses most others before our code sees them. */
const line = fc.oneof(
  { weight: 12, arbitrary: fc.string({ unit: 'grapheme-ascii', maxLength: 40 }).map((text) => text.trim()) },
  {
    weight: 1,
    arbitrary: fc.string({ unit: 'binary', maxLength: 40 }).map((text) =>
      Buffer.from(text)
        .toString('latin1')
        .replaceAll(/[\r\n]/g, ''),
    ),
  },
)

/** Words of an address: what does not belong there is written as it must be, now and then. */
const address = line.map((text) => encodeURI(text.toWellFormed()).replaceAll('%25', '%'))

const headerNames = [
  'If-Match',
  'If-None-Match',
  'Expect',
  'Upgrade',
  'Content-Encoding',
  'Accept',
  'Cookie',
  'Origin',
  'X-Forwarded-For',
  'X-Hook-Secret',
  'Traceparent',
  'Range',
]

const keys = fc.oneof(
  { weight: 4, arbitrary: fc.uuid() },
  { weight: 2, arbitrary: line },
  inherited,
  fc.constantFrom('', ' ', '"quoted"', 'a,b', 'x'.repeat(256), 'x'.repeat(9_000), '\xe9', '../../etc'),
)

type Framing = (length: number) => string

/** How the length of the body is declared, rightly or not. */
const framings: fc.Arbitrary<Framing> = fc.oneof(
  { weight: 10, arbitrary: fc.constant<Framing>((length) => `Content-Length: ${length}`) },
  fc.constantFrom<Framing[]>(
    (length) => `Content-Length: ${length + 1}`,
    (length) => `Content-Length: ${Math.max(0, length - 1)}`,
    (length) => `Content-Length: ${length}\r\nContent-Length: ${length + 5}`,
    () => 'Content-Length: -1',
    () => 'Content-Length: 99999999999999999999',
    () => 'Transfer-Encoding: chunked',
    (length) => `Transfer-Encoding: chunked\r\nContent-Length: ${length}`,
  ),
)

export function hostileRequests({ paths, authorization, body }: RequestWords): fc.Arbitrary<Buffer> {
  return fc
    .record({
      method: methods,
      path: fc.oneof(
        { weight: 6, arbitrary: fc.constantFrom(...paths) },
        fc.tuple(fc.constantFrom(...paths), inherited).map(([path, name]) => `${path}/${name}`),
        address.map((text) => `/${text}`),
      ),
      query: fc.oneof(
        { weight: 4, arbitrary: fc.constant('') },
        fc.tuple(inherited, address).map(([name, text]) => `?${name}=${text}&${name}[${name}]=1`),
        address.map((text) => `?${text}`),
      ),
      authorization: fc.oneof({ weight: 5, arbitrary: fc.constant(authorization) }, line),
      key: fc.option(keys),
      type: fc.constantFrom(...types),
      more: fc.array(fc.tuple(fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...headerNames) }, inherited), line), {
        maxLength: 2,
      }),
      framing: framings,
      bytes: bodyBytes(body),
    })
    .map(({ method, path, query, authorization: credential, key, type, more, framing, bytes }) => {
      const head = [
        `${method} ${path}${query} HTTP/1.1`,
        'Host: 127.0.0.1',
        'Connection: close',
        `Authorization: ${credential}`,
        `Content-Type: ${type}`,
        ...(key === null ? [] : [`Idempotency-Key: ${key}`]),
        ...more.map(([name, value]) => `${name}: ${value}`),
        framing(bytes.length),
      ]
      return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), bytes])
    })
}
