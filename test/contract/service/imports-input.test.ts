import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { after, before, describe, test } from 'node:test'
import { ris } from '../../../service/imports/parse/test-files.ts'
import { UPLOAD_BYTES_MOST } from '../../../service/imports/uploads/storage.ts'
import { type Cluster, makeWorkspace, openCluster, type TestServer } from '../../support/service/cluster.ts'
import {
  ask,
  ended,
  hookSecret,
  notification,
  notify,
  referencesOf,
  type Started,
  see,
  startImport,
  untilSeen,
  upload,
} from '../../support/service/imports/imports.ts'
import { speak } from '../../support/service/socket.ts'

/** What is wrong is found before any broker is asked, so the embedded store and its own bus are enough here. */
describe('bad imports', () => {
  let cluster: Cluster
  let server: TestServer
  let started: Started
  before(async () => {
    cluster = await openCluster('sqlite', { env: { ONCEONLY_HOOK_SECRET: hookSecret } })
    server = cluster.servers[0] as TestServer
    started = await begun()
  })
  after(() => cluster[Symbol.asyncDispose]())

  /** Its start is handled behind the answer. From then on nothing happens to it by itself, so that it can be compared. */
  async function begun(): Promise<Started> {
    const started = await startImport(server, ['a.ris', 'b.ris'])
    await untilSeen('the import has begun', server, started.searchId, ({ history }) => history.length === 1)
    return started
  }

  const good = { projectId: 'p', searchName: 's', files: ['a.ris'] }

  for (const [name, body, fields] of [
    ['a list', [], ['body']],
    ['an empty object', {}, ['projectId', 'searchName', 'files']],
    ['an unknown field', { ...good, searchId: 'mine' }, ['searchId']],
    ['a blank project', { ...good, projectId: ' ' }, ['projectId']],
    ['a project that is a number', { ...good, projectId: 7 }, ['projectId']],
    ['a name of 201 characters', { ...good, searchName: 'x'.repeat(201) }, ['searchName']],
    ['a name with a NUL', { ...good, searchName: 'a\0b' }, ['searchName']],
    ['a name with half a character', '{"projectId":"p","searchName":"\\ud83d","files":["a.ris"]}', ['searchName']],
    ['files that are no list', { ...good, files: 'a.ris' }, ['files']],
    ['no files', { ...good, files: [] }, ['files']],
    ['101 files', { ...good, files: Array.from({ length: 101 }, (_, n) => `${n}.ris`) }, ['files']],
    ['a file twice', { ...good, files: ['a.ris', 'a.ris'] }, ['files[1]']],
    ['a file that is a number', { ...good, files: [7] }, ['files[0]']],
    ['a way out', { ...good, files: ['../a.ris'] }, ['files[0]']],
    ['a way out on Windows', { ...good, files: ['..\\a.ris'] }, ['files[0]']],
    ['a folder', { ...good, files: ['ok.ris', 'x/a.ris'] }, ['files[1]']],
    ['the folder itself', { ...good, files: ['.', '..'] }, ['files[0]', 'files[1]']],
    ['a line end in a name', { ...good, files: ['a\nb.ris'] }, ['files[0]']],
    ['a name that ends with a space', { ...good, files: ['a.ris '] }, ['files[0]']],
  ] as const) {
    test(`${name}: 400, and every field that is wrong is named`, async () => {
      const before = await counts()
      const answer = await server.post('/api/imports', body, { key: `bad-${name.replaceAll(/\W/g, '-')}` })
      assert.equal(answer.status, 400, answer.text)
      assert.deepEqual(
        answer.body.errors?.map(({ field }) => field),
        fields,
      )
      assert.deepEqual(await counts(), before)
    })
  }

  test('a caller without a key or the right, or of another workspace, sees no import and changes none', async () => {
    const other = await makeWorkspace(server, 'elsewhere')
    const before = await see(server, started.searchId)
    assert.equal((await server.get(`/api/imports/${started.searchId}`, { apiKey: 'nonsense' })).status, 401)
    assert.equal((await server.get(`/api/imports/${started.searchId}`, { apiKey: other })).status, 404)
    assert.equal((await upload(server, started, 'a.ris', ris(1), other)).status, 404)
    assert.equal((await upload(server, started, 'a.ris', ris(1), 'nonsense')).status, 401)
    await server.admin('PUT', '/workspaces/elsewhere/callers/api/rights', { rights: ['messages'] })
    assert.equal((await server.post('/api/imports', good, { apiKey: other })).status, 403)
    assert.deepEqual(await see(server, started.searchId), before)
  })

  for (const [name, path] of [
    ['an unknown import', '/api/imports/nothing/files/a.ris'],
    ['an import with a NUL', '/api/imports/%00/files/a.ris'],
    ['an unknown file', 'c.ris'],
    ['a way out', '..%2F..%2Fonceonly.db'],
    ['a long way out', `${'..%2F'.repeat(30)}etc%2Fpasswd`],
    ['a way out on Windows', '..%5Ca.ris'],
    ['an absolute path', '%2Fetc%2Fpasswd'],
    ['a name with a NUL', 'a.ris%00'],
    ['a name that is too long', 'x'.repeat(5_000)],
    ['a name that cannot be decoded', '%E0%A4%A'],
  ] as const) {
    test(`an upload to ${name} is refused, and nothing is stored`, async () => {
      const full = path.startsWith('/') ? path : `/api/imports/${started.searchId}/files/${path}`
      const before = await see(server, started.searchId)
      const answer = await ask(server, 'PUT', full, 'x', { authorization: `Bearer ${server.apiKey}` })
      assert.ok(answer.status >= 400 && answer.status < 500, answer.text)
      assert.equal(typeof answer.body.type, 'string')
      assert.deepEqual(await see(server, started.searchId), before)
    })
  }

  test('a file that is too large is refused before it is read', async () => {
    const asking = request(`${server.url}/api/imports/${started.searchId}/files/a.ris`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${server.apiKey}`, 'content-length': UPLOAD_BYTES_MOST + 1 },
    })
    asking.flushHeaders()
    const [response] = (await once(asking, 'response')) as [IncomingMessage]
    asking.on('error', () => {})
    asking.destroy()
    assert.equal(response.statusCode, 413)
    assert.equal((await see(server, started.searchId)).files[0]?.status, 'waiting')
  })

  test('an upload that breaks off leaves nothing, and can be sent again', async () => {
    const broken = await startImport(server, ['a.ris'])
    const asking = request(`${server.url}/api/imports/${broken.searchId}/files/a.ris`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${server.apiKey}`, 'content-length': 1_000 },
    })
    asking.on('error', () => {})
    asking.write('TY  - JOUR\n')
    // A server that stores the upload has not answered yet; a refusal would have arrived by now.
    const answered = once(asking, 'response').then(() => 'answered')
    assert.equal(await Promise.race([answered.catch(() => 'gone'), seeTwice(broken.searchId)]), 'waiting')
    asking.destroy()
    assert.equal((await upload(server, broken, 'a.ris', ris(1))).status, 201)
    assert.equal((await ended(server, broken.searchId)).references, 1)
  })

  async function seeTwice(searchId: string): Promise<string> {
    await see(server, searchId)
    return (await see(server, searchId)).files[0]?.status ?? ''
  }

  for (const [name, body, fields] of [
    ['not JSON', '{', ['body']],
    ['a list', '[]', ['body']],
    ['no records', '{}', ['Records']],
    ['a record without anything', '{"Records":[{}]}', ['Records[0].s3']],
    [
      'a key without a file',
      '{"Records":[{"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},"object":{"key":"a","eTag":"e"}}}]}',
      ['Records[0].s3.object.key'],
    ],
  ] as const) {
    test(`a notification that is ${name}: 400, every field named`, async () => {
      const answer = await notify(server, body)
      assert.equal(answer.status, 400, answer.text)
      assert.deepEqual(
        answer.body.errors?.map(({ field }) => field),
        fields,
      )
    })
  }

  test('a notification of what is not there changes nothing', async () => {
    const before = await see(server, started.searchId)
    const asked = [
      [notification('nothing', 'a.ris'), 404],
      [notification(started.searchId, 'c.ris'), 404],
      [notification(started.searchId, '../a.ris'), 404],
      // Declared, and not uploaded.
      [notification(started.searchId, 'a.ris'), 409],
    ] as const
    for (const [body, status] of asked) {
      const answer = await notify(server, body)
      assert.equal(answer.status, status, answer.text)
      assert.deepEqual(
        answer.body.errors?.map(({ field }) => field),
        ['Records[0].s3.object.key'],
      )
    }
    assert.deepEqual(await see(server, started.searchId), before)
  })

  test('one bad record refuses the whole notification', async () => {
    const pair = await startImport(server, ['a.ris', 'b.ris'])
    await upload(server, pair, 'a.ris', ris(1))
    const [good, bad] = [notification(pair.searchId, 'a.ris', 'other'), notification(pair.searchId, 'c.ris')] as [
      { Records: unknown[] },
      { Records: unknown[] },
    ]
    const answer = await notify(server, { Records: [...good.Records, ...bad.Records] })
    assert.equal(answer.status, 404)
    assert.deepEqual(
      answer.body.errors?.map(({ field }) => field),
      ['Records[1].s3.object.key'],
    )
  })

  test('a notification without the secret is refused', async () => {
    const body = JSON.stringify(notification(started.searchId, 'a.ris'))
    const sign = (secret: string) => `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
    const headersOf = (headers: Record<string, string>) => ({ 'content-type': 'application/json', ...headers })
    for (const headers of [
      {},
      { 'x-hook-secret': 'wrong' },
      { authorization: `Bearer ${server.apiKey}` },
      { 'x-hook-signature': sign('wrong') },
      { 'x-hook-signature': sign(hookSecret).replace(/.$/, (last) => (last === '0' ? '1' : '0')) },
    ]) {
      const answer = await ask(server, 'POST', '/hooks/s3', body, headersOf(headers))
      assert.equal(answer.status, 401, JSON.stringify(headers))
    }
    // With the right one it is read, and refused for what it says.
    for (const headers of [{ authorization: `Bearer ${hookSecret}` }, { 'x-hook-signature': sign(hookSecret) }]) {
      assert.equal((await ask(server, 'POST', '/hooks/s3', body, headersOf(headers))).status, 409)
    }
  })

  test('a notification that contradicts another one is refused for good, and changes nothing', async () => {
    const started = await begun()
    await upload(server, started, 'a.ris', ris(1))
    const body = JSON.stringify(notification(started.searchId, 'a.ris', 'etag', '0077'))
    assert.equal((await notify(server, body)).status, 200)
    const before = await see(server, started.searchId)
    for (let n = 0; n < 2; n++) {
      const answer = await notify(server, body.replace('"size":1', '"size":2'))
      assert.deepEqual([answer.status, answer.body.retryable], [409, false], answer.text)
    }
    const bytes = Buffer.from(body.replace('a.ris', '\xe9.ris'), 'latin1')
    const answer = await ask(server, 'POST', '/hooks/s3', bytes, { 'x-hook-secret': hookSecret })
    assert.deepEqual([answer.status, answer.body.errors?.[0]?.field], [400, 'body'], answer.text)
    assert.deepEqual(await see(server, started.searchId), before)
  })

  for (const [header, value, status] of [
    ['Content-Range', 'bytes 0-4/10', 400],
    ['Content-Encoding', 'gzip', 415],
  ] as const) {
    test(`an upload with ${header} is not the file itself, and is refused`, async () => {
      const path = `/api/imports/${started.searchId}/files/a.ris`
      const headers = { authorization: `Bearer ${server.apiKey}`, [header]: value }
      const answer = await ask(server, 'PUT', path, ris(1), headers)
      assert.deepEqual([answer.status, answer.body.errors?.[0]?.field], [status, header], answer.text)
      assert.equal((await see(server, started.searchId)).files[0]?.status, 'waiting')
    })
  }

  for (const [query, status, field] of [
    ['?limit=0', 400, 'limit'],
    ['?limit=201', 400, 'limit'],
    ['?limit=1&limit=2', 400, 'limit'],
    ['?cursor=nonsense', 400, 'cursor'],
    ['?cursor=', 400, 'cursor'],
    ['?file=a.ris&file=b.ris', 400, 'file'],
    ['?file=c.ris', 404, 'file'],
    ['?file=a.ris%00', 404, 'file'],
  ] as const) {
    test(`references asked for with ${query}: ${status}`, async () => {
      const answer = await server.get(`/api/imports/${started.searchId}/references${query}`)
      assert.deepEqual([answer.status, answer.body.errors?.map((each) => each.field)], [status, [field]], answer.text)
    })
  }

  test('a page of references ends before it is too large, and the next page continues', async () => {
    const abstract = Array.from({ length: 900 }, () => 'x'.repeat(1_000)).join('\n      ')
    const long = (n: number) => `TY  - JOUR\nTI  - Long ${n}\nAB  - ${abstract}\nER  - \n`
    const large = await startImport(server, ['long.ris'])
    await upload(server, large, 'long.ris', [1, 2, 3, 4].map(long).join('') + ris(5))
    assert.equal((await ended(server, large.searchId)).references, 5)
    const first = await referencesOf(server, large.searchId)
    const second = await referencesOf(server, large.searchId, `?cursor=${first.cursor}`)
    assert.deepEqual(
      [first, second].map(({ references }) => references.map(({ number }) => number)),
      [
        [1, 2, 3],
        [4, 5],
      ],
    )
    assert.equal(second.cursor, null)
  })

  test('references are seen by their own workspace only', async () => {
    const other = await makeWorkspace(server, 'curious')
    const path = `/api/imports/${started.searchId}/references`
    assert.equal((await server.get(path, { apiKey: other })).status, 404)
    assert.equal((await server.get(path, { apiKey: 'nonsense' })).status, 401)
    assert.deepEqual((await server.get(path)).body, { references: [], cursor: null })
  })

  test('what S3 sends when the hook is set up is welcome', async () => {
    const answer = await notify(server, { Service: 'Amazon S3', Event: 's3:TestEvent', Bucket: 'b' })
    assert.deepEqual([answer.status, answer.body], [200, { received: 0, duplicates: 0, ignored: 1 }])
  })

  async function counts(): Promise<unknown> {
    const rows = await cluster.sql(
      `select (select count(*) from import_searches) as searches,
              (select count(*) from onceonly_records where operation = 'imports.start') as keys`,
    )
    return { ...rows[0] }
  }
})

/** So short that every upload here takes longer, and longer than a busy machine pauses between two pieces. */
const REQUEST_MS = 2_500
const PIECE = 'x'.repeat(16 * 1024)

describe('slow uploads', { concurrency: true }, () => {
  let cluster: Cluster
  let server: TestServer
  before(async () => {
    cluster = await openCluster('sqlite', { env: { ONCEONLY_REQUEST_TIMEOUT_MS: String(REQUEST_MS) } })
    server = cluster.servers[0] as TestServer
  })
  after(() => cluster[Symbol.asyncDispose]())

  /** `missing` bytes are promised, and never come. */
  async function put(pieces: readonly string[], pauseMs: number, missing = 0) {
    const { searchId } = await startImport(server, ['a.csv'])
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0)
    const head = [
      `PUT /api/imports/${searchId}/files/a.csv HTTP/1.1`,
      'Host: localhost',
      `Authorization: Bearer ${server.apiKey}`,
      `Content-Length: ${bytes + missing}`,
      'Connection: close',
    ]
    const said = await speak(server.url, { pieces: [`${head.join('\r\n')}\r\n\r\n`, ...pieces], pauseMs })
    return { ...said, file: (await see(server, searchId)).files[0]?.status }
  }

  test('may take as long as they need while bytes arrive', async () => {
    const beganMs = performance.now()
    const { statuses, file } = await put(
      Array.from({ length: 18 }, () => PIECE),
      300,
    )
    const tookMs = performance.now() - beganMs
    assert.deepEqual(statuses, [201])
    assert.ok(tookMs > 2 * REQUEST_MS, `it took ${tookMs} ms`)
    assert.notEqual(file, 'waiting')
  })

  test('are cut when nothing comes any more', async () => {
    const { statuses, fields, file } = await put([PIECE.repeat(40)], 0, 1)
    assert.deepEqual([statuses, fields, file], [[408], ['body'], 'waiting'])
  })

  test('are cut when they only keep a connection', async () => {
    // All of it would come at last, and be taken, if the server waited long enough.
    const { statuses, fields, file } = await put(
      Array.from({ length: 80 }, () => 'x'),
      200,
    )
    assert.deepEqual([statuses, fields, file], [[408], ['body'], 'waiting'])
  })
})
