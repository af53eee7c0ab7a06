import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import { createLedger, type Ledger, type SqlTx } from 'onceonly'
import { until } from '../../../src/testing/until.ts'
import { type Cluster, makeWorkspace, openCluster, type TestServer } from '../../support/service/cluster.ts'
import { type Said, type Speech, speak } from '../../support/service/socket.ts'

/** Short, because tests wait for it; for all others a server has the time that a busy machine may need. */
const REQUEST_MS = 1_000
const LIMIT_BYTES = 9_000_000

const good = { recipientPhone: '+4915112345678', message: 'Once it is right' }
const body = JSON.stringify(good)
const key = 'bad-input'

/** Every bad request gets the name of the wrong part, and leaves no claim, no lock and no row. */
describe('bad input leaves nothing behind', () => {
  let cluster: Cluster
  let server: TestServer
  let ledger: Ledger<SqlTx>
  let strangersLead: string | null | undefined
  before(async () => {
    cluster = await openCluster('sqlite', { env: { ONCEONLY_REQUEST_TIMEOUT_MS: '600000' } })
    server = cluster.servers[0] as TestServer
    ledger = createLedger({ store: cluster.store, background: false })
    const apiKey = await makeWorkspace(server, 'strangers')
    strangersLead = (await server.send(good, { apiKey })).body.leadId
  })
  after(async () => {
    await ledger.stop()
    await cluster[Symbol.asyncDispose]()
  })

  afterEach(async ({ name }) => {
    if (name.startsWith('at last')) return
    const { rows } = await ledger.list({ tenant: 'demo' })
    assert.deepEqual(rows, [], 'a claim or a lock is held')
    for (const table of ['messages', 'conversations', 'leads']) {
      assert.deepEqual(await cluster.sql(`select id from ${table} where workspace_id = 'demo'`), [], `in ${table}`)
    }
  })

  const file = { filename: 'a.txt', contentType: 'text/plain' }
  for (const [name, sent, status, fields] of [
    ['no recipient', { message: 'Hello' }, 400, ['recipientPhone', 'recipientEmail']],
    ['a bad phone', { ...good, recipientPhone: '12' }, 400, ['recipientPhone']],
    ['a bad address', { ...good, recipientEmail: 'ann@' }, 400, ['recipientEmail']],
    ['an empty text', { ...good, message: '' }, 400, ['message']],
    ['a text of 10 001 characters', { ...good, message: 'x'.repeat(10_001) }, 400, ['message']],
    ['an unknown lead', { ...good, leadId: 'lead_unknown' }, 404, ['leadId']],
    ['an attachment without content', { ...good, attachments: [file] }, 400, ['attachments[0]']],
    ['broken JSON', body.slice(0, -1), 400, ['body']],
    ['nothing', '', 400, ['body']],
    ['a prototype', `{"__proto__":{"x":1},${body.slice(1)}`, 400, ['body']],
  ] as const) {
    for (const asked of [{ key }, {}]) {
      test(`${name}, ${'key' in asked ? 'with' : 'without'} a key`, async () => {
        const answer = await server.send(sent, asked)
        assert.equal(answer.status, status, answer.text)
        assert.deepEqual(
          answer.body.errors?.map(({ field }) => field),
          fields,
        )
      })
    }
  }

  test("another workspace's lead is unknown", async () => {
    const answer = await server.send({ ...good, leadId: strangersLead }, { key })
    assert.deepEqual([answer.status, answer.body.errors?.[0]?.field], [404, 'leadId'])
  })

  test('a wrong API key', async () => {
    assert.equal((await server.send(good, { key, apiKey: 'nonsense' })).status, 401)
  })

  /**
   * The line of the access log about an attempt, whichever layer answered. The line may follow the response, and even the line
   * of a later read; a second line would come before that of the read which waits for the first.
   */
  async function attemptOf<T>(attempt: () => Promise<T>) {
    const [answer, lines] = await attemptsOf(server, 1, attempt)
    return { answer, logged: lines[0] }
  }

  /** The same for several at once, at one server. */
  async function attemptsOf<T>(at: TestServer, count: number, attempt: () => Promise<T>) {
    const before = await markedLine(at)
    const answer = await attempt()
    const lines = () =>
      at
        .events('http.access')
        .slice(before.place)
        .filter(({ reqId }) => !marks.has(reqId))
    await until('every attempt is in the log', () => lines().length >= count)
    await markedLine(at)
    assert.equal(lines().length, count, 'an attempt is one line')
    const logged = lines().map(({ status, hungUp, problem }) => ({
      status,
      hungUp: hungUp === true,
      refused: typeof problem === 'string',
    }))
    return [answer, logged] as const
  }

  const marks = new Set<unknown>()

  /** How many lines there are up to that of a read of our own. */
  async function markedLine(at: TestServer): Promise<{ readonly place: number }> {
    const id = (await at.get('/api/leads')).headers.get('x-request-id')
    marks.add(id)
    const place = () => at.events('http.access').findIndex(({ reqId }) => reqId === id) + 1
    return { place: await until('the mark is in the log', place) }
  }

  /** A request by hand: its lines, and what follows them. */
  const head = (...lines: string[]) =>
    [
      'POST /api/messages HTTP/1.1',
      'Host: localhost',
      'Connection: close',
      `Authorization: Bearer ${server.apiKey}`,
      'Content-Type: application/json',
      `Idempotency-Key: "${key}"`,
      ...lines,
      '',
      '',
    ].join('\r\n')
  const lengthOf = (text: string, more = 0) => `Content-Length: ${Buffer.byteLength(text) + more}`
  const chunked = 'Transfer-Encoding: chunked'
  const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`

  for (const [name, speech, status, fields] of [
    ['a length that is too long', () => ({ pieces: [head(lengthOf(body, 1)) + body], halfClose: true }), 400, ['body']],
    ['a length that is too short', () => ({ pieces: [head(lengthOf(body, -1)) + body] }), 400, ['body']],
    ['a length that is no number', () => ({ pieces: [head('Content-Length: ten') + body] }), 400, ['Content-Length']],
    ['a negative length', () => ({ pieces: [head('Content-Length: -1') + body] }), 400, ['Content-Length']],
    ['two lengths', () => ({ pieces: [head(lengthOf(body), lengthOf(body, 1)) + body] }), 400, ['Content-Length']],
    ['no length', () => ({ pieces: [head() + body] }), 400, ['body']],
    ['a length and chunks', () => ({ pieces: [head(lengthOf(body), chunked) + body] }), 400, ['Transfer-Encoding']],
    ['chunks that are none', () => ({ pieces: [`${head(chunked)}zz\r\n${body}\r\n`] }), 400, ['body']],
    ['chunks without an end', () => ({ pieces: [head(chunked) + chunk(body)], halfClose: true }), 400, ['body']],
    ['another coding', () => ({ pieces: [head('Transfer-Encoding: zip') + body] }), 400, ['Transfer-Encoding']],
    ['a head that never ends', () => ({ pieces: [`${head().trim()}\r\nX: ${'x'.repeat(20_000)}`] }), 431, ['headers']],
    ['a header with a NUL', () => ({ pieces: [head('X: a\0b', lengthOf(body)) + body] }), 400, ['headers']],
    ['what is not HTTP', () => ({ pieces: [`${body}\r\n\r\n`] }), 400, ['request']],
    ['too large a body', () => ({ pieces: [head(lengthOf(body, LIMIT_BYTES)), body] }), 413, ['body']],
    [
      'chunks that become too large',
      () => ({ pieces: [head(chunked), ...Array.from({ length: 9 }, () => chunk('x'.repeat(1_000_000)))] }),
      413,
      ['body'],
    ],
    [
      'an unsupported type',
      () => ({ pieces: [head(lengthOf(body)).replace('/json', '/xml') + body] }),
      415,
      ['Content-Type'],
    ],
    ['two keys', () => ({ pieces: [head('Idempotency-Key: other', lengthOf(body)) + body] }), 400, ['Idempotency-Key']],
    [
      'one key twice',
      () => ({ pieces: [head(`Idempotency-Key: ${key}`, lengthOf(body)) + body] }),
      400,
      ['Idempotency-Key'],
    ],
    [
      'two API keys',
      () => ({ pieces: [head('Authorization: Bearer x', lengthOf(body)) + body] }),
      400,
      ['Authorization'],
    ],
    ['two types', () => ({ pieces: [head('Content-Type: text/plain', lengthOf(body)) + body] }), 400, ['Content-Type']],
    ['two hosts', () => ({ pieces: [head('Host: elsewhere', lengthOf(body)) + body] }), 400, ['Host']],
  ] as const satisfies readonly (readonly [string, () => Speech, number, readonly string[]])[]) {
    test(`${name}: ${status}, and the part is named`, async () => {
      const spoken: Speech = speech()
      const { answer: said, logged } = await attemptOf(() => speak(server.url, spoken))
      assert.deepEqual([said.statuses, said.fields], [[status], fields], said.text)
      assert.deepEqual(logged, { status, hungUp: spoken.halfClose === true, refused: true })
    })
  }

  const slowSpeeches = {
    'a body of which nothing comes': () => ({ pieces: [head(lengthOf(body))] }),
    'a body of which the last byte is missing': () => ({ pieces: [head(lengthOf(body)) + body.slice(0, -1)] }),
    'a body that comes byte by byte': () => ({ pieces: [head(lengthOf(body)), ...body.split('')], pauseMs: 100 }),
    'chunks that never end': () => ({ pieces: [head(chunked), ...Array.from(body, chunk)], pauseMs: 100 }),
    'a head that comes byte by byte': () => ({ pieces: head(lengthOf(body)).split(''), pauseMs: 100 }),
    'a connection on which nothing is said': () => ({ pieces: [] }),
  } as const satisfies Readonly<Record<string, () => Speech>>

  let allSlow: Promise<ReadonlyMap<string, Said>> | null = null

  /** All of them at once, at a server of their own: each is given up only after its time. */
  async function speakSlowly(): Promise<ReadonlyMap<string, Said>> {
    const hasty = await cluster.add({ ONCEONLY_REQUEST_TIMEOUT_MS: String(REQUEST_MS) })
    const all = Object.entries<() => Speech>(slowSpeeches)
    const [said, logged] = await attemptsOf(hasty, all.length, () =>
      Promise.all(all.map(([, speech]) => speak(hasty.url, speech()))),
    )
    assert.deepEqual(
      logged,
      all.map(() => ({ status: 408, hungUp: false, refused: true })),
    )
    await hasty.stop()
    return new Map(all.map(([name], at) => [name, said[at] as Said]))
  }

  for (const name of Object.keys(slowSpeeches)) {
    // A server that waited for the rest would wait forever, or until the request is complete and valid.
    test(`${name}: 408, in time`, async () => {
      allSlow ??= speakSlowly()
      const said = (await allSlow).get(name)
      assert.deepEqual([said?.statuses, said?.fields], [[408], ['body']], said?.text)
    })
  }

  for (const [name, lines] of [
    ['with a key', (text: string) => text],
    ['without a key', (text: string) => text.replace(/Idempotency-Key: .*\r\n/, '')],
  ] as const) {
    test(`text that is not UTF-8, ${name}, is refused and not guessed`, async () => {
      const bytes = Buffer.from(body.replace('right', 'right?')).fill(
        0xff,
        body.indexOf('right'),
        body.indexOf('right') + 1,
      )
      const pieces = [lines(head(`Content-Length: ${bytes.length}`)), bytes]
      const said = await speak(server.url, { pieces })
      assert.deepEqual([said.statuses, said.fields], [[400], ['body']], said.text)
    })
  }

  for (const path of ['/api/messages:batchSend', '/case-escalations:batchCreate', '/api/imports']) {
    test(`nor is it guessed at ${path}`, async () => {
      const bytes = Buffer.from('{"batchId":"b","items":[{"itemKey":"a","message":"?"}]}')
      bytes[bytes.indexOf('?')] = 0xff
      const unkeyed = head(`Content-Length: ${bytes.length}`).replace(/Idempotency-Key: .*\r\n/, '')
      const said = await speak(server.url, { pieces: [unkeyed.replace('/api/messages', path), bytes] })
      assert.deepEqual([said.statuses, said.fields], [[400], ['body']], said.text)
    })
  }

  for (const connection of ['close', 'keep-alive']) {
    test(`a wrong API key is refused before the body has come, once, on a connection to ${connection}`, async () => {
      const slow = head(lengthOf(body)).replace(server.apiKey, 'nonsense').replace('close', connection)
      // One that is kept alive ends with the time for the body, which is short here, but not for an answer.
      const asked = connection === 'close' ? server : await cluster.add({ ONCEONLY_REQUEST_TIMEOUT_MS: '4000' })
      const [said, logged] = await attemptsOf(asked, 1, () => speak(asked.url, { pieces: [slow] }))
      assert.deepEqual(said.statuses, [401], said.text)
      assert.deepEqual(logged, [{ status: 401, hungUp: false, refused: true }])
      if (asked !== server) await asked.stop()
    })
  }

  for (const [name, path, status] of [
    ['cannot be read', '/%zz', 400],
    ['has a part that is too long', `/api/messages/${'x'.repeat(2_401)}`, 414],
  ] as const) {
    test(`a path that ${name} is a problem document, too`, async () => {
      const { answer, logged } = await attemptOf(() => server.get(path))
      assert.deepEqual([answer.status, answer.body.errors?.[0]?.field], [status, 'path'])
      assert.match(answer.headers.get('content-type') ?? '', /^application\/problem\+json/)
      assert.deepEqual(logged, { status, hungUp: false, refused: true })
    })
  }

  test('at last: the same content under the same key is sent', async () => {
    const sent = await server.send(good, { key })
    assert.deepEqual([sent.status, sent.body.duplicateOnly], [201, undefined])
    // What follows a whole request does not change its answer.
    const open = head(lengthOf(body)).replace('close', 'keep-alive')
    const said = await speak(server.url, { pieces: [`${open}${body}and then nonsense`] })
    assert.deepEqual(said.statuses, [201], said.text)
    assert.match(said.text, /^idempotent-replayed: true/im)
    assert.equal((await cluster.sql("select id from messages where workspace_id = 'demo'")).length, 1)
  })
})
