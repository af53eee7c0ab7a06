import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { json } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { WebSocket } from 'ws'
import { until } from '../../../src/testing/until.ts'
import {
  type Cluster,
  makeWorkspace,
  onEveryPlace,
  type TestServer,
  withTwoServers,
} from '../../support/service/cluster.ts'
import { upload } from '../../support/service/imports/upload.ts'
import { makeLead, runNow, start as startRun, store } from '../../support/service/outreach/outreach.ts'

const env = {
  ONCEONLY_QUOTA_MESSAGES: '5',
  ONCEONLY_QUOTA_MESSAGE_BYTES: '100000',
  ONCEONLY_QUOTA_IMPORTS: '3',
  ONCEONLY_QUOTA_UPLOAD_BYTES: '3000000',
  ONCEONLY_QUOTA_UPLOADS: '1',
  ONCEONLY_QUOTA_PROJECT_BYTES: '1000',
  ONCEONLY_QUOTA_SEQUENCES: '2',
  ONCEONLY_QUOTA_RUNS: '2',
  ONCEONLY_QUOTA_ROOMS: '2',
  ONCEONLY_QUOTA_CONNECTIONS: '9',
  ONCEONLY_QUOTA_CLIENTS: '12',
}
const bytes = (n: number) => ({
  filename: 'a.txt',
  contentType: 'text/plain',
  base64: Buffer.alloc(n).toString('base64'),
})

const crowd = (n: number) => ({ recipientPhone: `+49307${n}`, message: 'to all of you' })

onEveryPlace('quotas', (place) => {
  let cluster: Cluster
  let one: TestServer
  let two: TestServer
  withTwoServers(place, (...opened) => void ([cluster, one, two] = opened), env)

  const used = async (workspace: string) => {
    const rows = await cluster.sql<{ quota: string; used: unknown }>(
      `select quota, sum(used) as used from workspace_usage where workspace_id = '${workspace}' group by quota`,
    )
    return Object.fromEntries(rows.map((row) => [row.quota, Number(row.used)]))
  }

  test('messages are counted over all processes; retries and duplicates of what was accepted are still answered', async () => {
    const apiKey = await makeWorkspace(one, 'full')
    const other = await makeWorkspace(one, 'other')
    const body = (n: number) => ({ recipientPhone: '+4930222', message: `number ${n}` })
    for (const n of [1, 2, 3, 4]) {
      assert.equal((await [one, two][n % 2]?.send(body(n), { apiKey }))?.status, n === 1 ? 201 : 200)
    }
    const keyed = await one.send(body(5), { apiKey, key: 'k-5' })
    assert.equal(keyed.status, 200)
    for (const server of [one, two]) {
      const refused = await server.send(body(6), { apiKey, key: 'k-6' })
      assert.deepEqual(
        [refused.status, refused.body.type, refused.body.retryable],
        [403, '/problems/quota-exceeded', false],
      )
      assert.deepEqual(refused.body['quota'], { name: 'messages', limit: 5, used: 5 })
      assert.match(String(refused.body['detail']), /keeps 5 of 5 messages, and this needs 1 more. Nothing was done/)
      const retried = await server.send(body(5), { apiKey, key: 'k-5' })
      assert.deepEqual([retried.status, retried.body.message?._id], [200, keyed.body.message?._id])
      const duplicate = await server.send(body(4), { apiKey })
      assert.deepEqual([duplicate.status, duplicate.body.duplicateOnly], [200, true])
    }
    assert.equal((await one.send(body(6), { apiKey: other })).status, 201)
    const items = [{ itemKey: 'i', ...body(7) }]
    const batch = await two.post('/api/messages:batchSend', { batchId: 'b', items }, { apiKey })
    assert.match(batch.text, /"errorCode":"QUOTA_EXCEEDED"/)
    // A refused message leaves neither rows nor a lock: where there is room again, it goes out under the same key.
    await cluster.sql(`delete from messages where id = '${keyed.body.message?._id}'`)
    assert.equal((await two.send(body(6), { apiKey, key: 'k-6' })).status, 200)
    assert.equal((await used('full'))['messages'], 5)
  })

  test('the count is right when many write at once, and the last places are not left empty', async () => {
    const apiKey = await makeWorkspace(one, 'crowd')
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? one : two).send(crowd(n), { apiKey })),
    )
    const accepted = answers.filter(({ status }) => status < 300).length
    assert.ok(accepted >= 5, `${accepted} were accepted`)
    assert.deepEqual(new Set(answers.map(({ status }) => status)).difference(new Set([200, 201, 403])), new Set())
    const [kept] = await cluster.sql<{ n: unknown }>(`select count(*) as n from messages where workspace_id = 'crowd'`)
    assert.deepEqual([Number(kept?.n), (await used('crowd'))['messages']], [accepted, accepted])
    assert.equal((await one.send(crowd(41), { apiKey })).status, 403)
  })

  test('a run whose message finds no room waits for it, and sends then', async () => {
    // The helpers of runs speak for the demo workspace.
    const lead = await makeLead(one, { recipientPhone: '+4930555' })
    for (let n = 0; n < 4; n++) await one.send(crowd(n))
    const sequence = await store(one, 'Quota', [{ id: 'hello', type: 'sms', template: 'Hello' }])
    const runId = await startRun(one, sequence, lead)
    const step = async () => (await runNow(two, runId)).steps.at(-1)
    await until('it was refused', async () => ((await step())?.attempts ?? 0) > 0 && (await step())?.error !== null)
    const waiting = await runNow(two, runId)
    assert.match(waiting.steps.at(-1)?.error ?? '', /keeps 5 of 5 messages/)
    assert.equal(['failed', 'succeeded'].includes(waiting.state), false, waiting.state)
    await cluster.sql(`delete from messages where workspace_id = 'demo'`)
    await cluster.advance(3_600_000)
    await until('it was sent', async () => (await runNow(one, runId)).state === 'succeeded')
  })

  test('bytes of messages are counted; those of attachments no longer once they were sent', async () => {
    const apiKey = await makeWorkspace(one, 'large')
    const send = (message: string, n: number) =>
      one.send({ recipientEmail: 'a@example.com', message, attachments: [bytes(n)] }, { apiKey })
    const refused = await send('too large', 90_000)
    assert.deepEqual([refused.status, refused.body['quota']], [403, { name: 'message-bytes', limit: 100_000, used: 0 }])
    for (const text of ['one', 'two', 'six']) assert.ok((await send(text, 60_000)).status < 202, text)
    assert.deepEqual(await used('large'), { messages: 3, 'message-bytes': 9 })
  })

  const start = (server: TestServer, apiKey: string, key?: string) =>
    server.post(
      '/api/imports',
      { projectId: 'p', searchName: 's', files: ['a.csv', 'b.csv', 'c.csv'] },
      { apiKey, ...(key === undefined ? {} : { key }) },
    )
  const idOf = async (answer: ReturnType<typeof start>) => ({ searchId: String((await answer).body['searchId']) })

  test('imports are counted over all processes, and an accepted one is still answered to its key', async () => {
    const apiKey = await makeWorkspace(one, 'many')
    const first = await start(one, apiKey, 'first')
    for (const server of [two, one]) assert.equal((await start(server, apiKey)).status, 201)
    for (const key of [undefined, 'fourth']) {
      const refused = await start(two, apiKey, key)
      assert.deepEqual([refused.status, refused.body.type], [403, '/problems/quota-exceeded'], refused.text)
      assert.deepEqual(refused.body['quota'], { name: 'imports', limit: 3, used: 3 })
    }
    const again = await start(two, apiKey, 'first')
    assert.deepEqual([again.status, again.text], [201, first.text])
    assert.equal((await start(one, await makeWorkspace(one, 'few'))).status, 201)
  })

  test('bytes of uploads are counted over all processes, also without a declared length', async () => {
    const apiKey = await makeWorkspace(one, 'bytes')
    const started = await idOf(start(one, apiKey))
    const large = new Uint8Array(2_500_000).fill(120)
    assert.equal((await upload(one, started, 'a.csv', large, apiKey)).status, 201)
    const refused = await upload(two, started, 'b.csv', large, apiKey)
    assert.equal(refused.status, 403, refused.text)
    assert.deepEqual(refused.body['quota'], { name: 'upload-bytes', limit: 3_000_000, used: 2_500_000 })
    const streamed = await fetch(`${two.url}/api/imports/${started.searchId}/files/b.csv`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${apiKey}` },
      body: new Blob([large]).stream(),
      duplex: 'half',
    } as RequestInit)
    assert.equal(streamed.status, 403)
    // The same file again is no news, and what was refused has left nothing behind.
    assert.equal((await upload(two, started, 'a.csv', large, apiKey)).status, 200)
    const small = { method: 'PUT', headers: { authorization: `Bearer ${apiKey}` }, duplex: 'half' } as const
    const path = `${two.url}/api/imports/${started.searchId}/files/b.csv`
    // Almost all that is left, also without a declared length.
    const last = await fetch(path, { ...small, body: new Blob([large.slice(0, 400_000)]).stream() } as RequestInit)
    assert.equal(last.status, 201)
    const [kept] = await cluster.sql<{ used: unknown }>(
      `select sum(used) as used from workspace_usage where workspace_id = 'bytes' and quota = 'upload-bytes'`,
    )
    assert.equal(Number(kept?.used), 2_900_000)
  })

  test('a workspace has so many uploads under way on one server; another one is served meanwhile', async () => {
    const apiKey = await makeWorkspace(one, 'slow')
    const started = await idOf(start(one, apiKey))
    const slow = request(`${one.url}/api/imports/${started.searchId}/files/a.csv`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${apiKey}`, 'content-length': '10' },
    })
    slow.write('title')
    await until('the room is promised', async () => {
      const rows = await cluster.sql(
        `select 1 from import_uploads where search_id = '${started.searchId}' and promised = 10`,
      )
      return rows.length === 1
    })
    const refused = await upload(one, started, 'b.csv', 'title\nx\n', apiKey)
    assert.deepEqual([refused.status, refused.body.type], [429, '/problems/too-many-at-once'], refused.text)
    assert.deepEqual(refused.body['quota'], { name: 'uploads', limit: 1, used: 1 })
    assert.ok(Number(refused.headers.get('retry-after')) > 0)
    const other = await makeWorkspace(one, 'quick')
    assert.equal((await upload(one, await idOf(start(one, other)), 'a.csv', 'title\nx\n', other)).status, 201)
    slow.end('\nwxyz')
    const [response] = await once(slow, 'response')
    assert.equal(response.statusCode, 201, JSON.stringify(await json(response)))
    assert.equal((await upload(one, started, 'b.csv', 'title\nx\n', apiKey)).status, 201)

    // One that is cut off gives its place and its bytes back.
    const cut = request(`${one.url}/api/imports/${started.searchId}/files/c.csv`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${apiKey}`, 'content-length': '10' },
    })
    cut.on('error', () => {})
    cut.write('title')
    const promised = async () => (await cluster.sql('select 1 from import_uploads where promised = 10')).length
    await until('its bytes are promised', async () => (await promised()) === 2)
    cut.destroy()
    await until('they are not any more', async () => (await promised()) === 1)
    assert.equal((await upload(one, started, 'c.csv', 'title\nx\n', apiKey)).status, 201)
  })

  test('projects are counted by their bytes, sequences by their versions', async () => {
    const apiKey = await makeWorkspace(one, 'documents')
    const put = async (id: string, chars: number) => {
      const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ questions: ['x'.repeat(chars)] })
      return (await fetch(`${one.url}/api/projects/${id}`, { method: 'PUT', headers, body })).status
    }
    assert.deepEqual([await put('a', 900), await put('b', 900), await put('a', 900)], [200, 403, 200])
    assert.deepEqual([await put('a', 100), await put('b', 700), await put('b', 900)], [200, 200, 403])
    const store = (template: string, key: string) =>
      two.post('/api/sequences', { name: 'Hello', steps: [{ id: 'a', type: 'sms', template }] }, { apiKey, key })
    assert.deepEqual([(await store('one', 'k1')).status, (await store('two', 'k2')).status], [201, 201])
    const refused = await store('three', 'k3')
    assert.deepEqual([refused.status, refused.body['quota']], [403, { name: 'sequences', limit: 2, used: 2 }])
    assert.equal((await store('two', 'k2')).status, 201)
  })

  test('runs are counted over all processes, and an accepted one is named again', async () => {
    const apiKey = await makeWorkspace(one, 'runners')
    const lead = await makeLead(one, { recipientPhone: '+4930666' }, { apiKey })
    const sequence = await store(one, 'Runs', [{ id: 'pause', type: 'wait', ms: 600_000 }], { apiKey })
    const run = async (server: TestServer, runId: string) => {
      const { status, body } = await server.post(`/api/sequences/${sequence}/runs`, { leadId: lead, runId }, { apiKey })
      return [status, body['quota'] ?? null]
    }
    const full = [403, { name: 'runs', limit: 2, used: 2 }]
    assert.deepEqual(
      [await run(one, 'a'), await run(two, 'b')],
      [
        [201, null],
        [201, null],
      ],
    )
    assert.deepEqual([await run(one, 'c'), await run(two, 'c')], [full, full])
    assert.deepEqual(
      [await run(two, 'a'), await run(one, 'b')],
      [
        [201, null],
        [201, null],
      ],
    )
  })

  /** Returns what the server sends first: a frame, or the reason for closing. */
  async function enter(
    server: TestServer,
    apiKey: string,
    room: string,
    client = `c${randomUUID().slice(0, 8)}`,
  ): Promise<{ socket: WebSocket; said: string }> {
    const socket = new WebSocket(
      `${server.url.replace('http', 'ws')}/chat/socket?region=frankfurt`,
      'onceonly.v1+json',
      {
        headers: { authorization: `Bearer ${apiKey}` },
      },
    )
    const said = Promise.withResolvers<string>()
    socket.on('message', (data) => {
      const frame = JSON.parse(String(data)) as { kind: string; code?: number; reason?: string }
      said.resolve(frame.kind === 'ended' ? `${frame.code} ${frame.reason}` : frame.kind)
    })
    socket.on('close', (code, reason) => said.resolve(`${code} ${reason}`))
    socket.on('unexpected-response', (_request, response) => {
      response.setEncoding('utf8').on('data', (text) => said.resolve(`${response.statusCode} ${text}`))
    })
    const hello = { kind: 'hello', version: 1, room, client, epoch: 1, generation: 1, instance: client }
    socket.on('open', () => socket.send(JSON.stringify(hello)))
    socket.on('error', () => {})
    after(() => socket.terminate())
    return { socket, said: await said.promise }
  }

  test('a workspace has a limit of rooms, over all processes; entering an existing one is always allowed', async () => {
    const apiKey = await makeWorkspace(one, 'rooms')
    for (const [server, room] of [
      [one, 'a'],
      [two, 'b'],
    ] as const) {
      const { socket, said } = await enter(server, apiKey, room)
      assert.equal(said, 'welcome')
      socket.close()
    }
    const refused = await enter(two, apiKey, 'c')
    assert.equal(refused.said, '4403 quota-exceeded: the workspace keeps 2 of 2 rooms')
    assert.equal((await enter(one, apiKey, 'b')).said, 'welcome')
    // To read what was said in a room makes none.
    const rooms = async () => (await cluster.sql('select room from onceonly_stream_rooms')).length
    const before = await rooms()
    const read = await one.get('/api/chat/rooms/nowhere/messages', { apiKey })
    assert.deepEqual([read.status, read.body['messages']], [200, []])
    assert.equal(await rooms(), before)
  })

  test('a workspace keeps so many names of clients; those that are known come in', async () => {
    const apiKey = await makeWorkspace(one, 'tabs')
    const said = async (server: TestServer, client: string) => {
      const entered = await enter(server, apiKey, 'a', client)
      entered.socket.close()
      return entered.said
    }
    for (let n = 0; n < 12; n++) assert.equal(await said(n % 2 === 0 ? one : two, `tab-${n}`), 'welcome')
    assert.equal(await said(two, 'tab-12'), '4403 quota-exceeded: the workspace keeps 12 of 12 clients')
    assert.notEqual(await said(one, 'tab-0'), '4403 quota-exceeded: the workspace keeps 12 of 12 clients')
  })

  test('a workspace has so many connections to one server; each that ends makes room', async () => {
    const apiKey = await makeWorkspace(one, 'busy')
    const entered = await Promise.all(Array.from({ length: 9 }, () => enter(one, apiKey, 'a')))
    assert.deepEqual(new Set(entered.map(({ said }) => said)), new Set(['welcome']))
    const refused = await enter(one, apiKey, 'a')
    assert.match(refused.said, /^429 The workspace has 9 of 9 connections of the chat to this server/)
    assert.equal((await enter(one, await makeWorkspace(one, 'idle'), 'a')).said, 'welcome')
    assert.equal((await enter(two, apiKey, 'a')).said, 'welcome')
    entered[0]?.socket.close()
    await until('there is room again', async () => (await enter(one, apiKey, 'a')).said === 'welcome')
  })
})
