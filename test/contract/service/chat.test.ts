import assert from 'node:assert/strict'
import { get } from 'node:http'
import { after, test } from 'node:test'
import type { Entry, StreamClient } from 'onceonly/stream'
import { createMemoryStorage, createStreamClient, createWebSocketTransport, identityText } from 'onceonly/stream'
import { fromShiViz } from 'onceonly/stream/parts'
import { WebSocket } from 'ws'
import type { HistoryMessage } from '../../../service/chat/history.ts'
import { until } from '../../../src/testing/until.ts'
import { demoKey, openedService, operatorToken } from '../../support/service/openapi/opened.ts'

const { service, ...opened } = await openedService()
after(() => opened[Symbol.asyncDispose]())

const socketUrl = (region: string) => `${service.url.replace('http', 'ws')}/chat/socket?region=${region}`

async function ask(method: string, path: string, body?: unknown, key = demoKey): Promise<unknown> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const response = await fetch(service.url + path, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) })
  const text = await response.text()
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`)
  return response.headers.get('content-type')?.startsWith('application/json') ? JSON.parse(text) : text
}

interface Guest {
  readonly client: StreamClient
  readonly seen: Entry[]
  readonly final: Map<string, number>
}

async function enter(room: string, region: string, key = demoKey, storage = createMemoryStorage()): Promise<Guest> {
  const seen: Entry[] = []
  const final = new Map<string, number>()
  const client = await createStreamClient({
    room,
    regions: [region],
    transport: createWebSocketTransport({ url: socketUrl, token: () => key }),
    mode: 'at-least-once',
    storage,
    from: 'start',
    receiver: {
      message: (entry) => void seen.push(entry),
      ordered: (identity, place) => void final.set(identityText(identity), place),
    },
    bounds: { reconnectBaseMs: 20, reconnectCapMs: 100 },
  })
  after(() => client.stop())
  return { client, seen, final }
}

async function keyOf(workspace: string, caller: string): Promise<string> {
  const made = await fetch(`${service.url}/api/admin/workspaces/${workspace}/keys`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${operatorToken}`,
      'content-type': 'application/json',
      'idempotency-key': `chat-${workspace}-${caller}`,
    },
    body: JSON.stringify({ caller }),
  })
  return ((await made.json()) as { key: string }).key
}

const textsOf = ({ seen }: Guest) => seen.map(({ body }) => (body as { text: string }).text)

test('a region is cut off, clients reply on both sides, it is joined again: all converge on one order', async () => {
  const [ann, bob] = [await enter('plans', 'frankfurt'), await enter('plans', 'tokyo')]
  const { identity } = await ann.client.send({ text: 'Lunch?' })
  await until('both saw the question', () => ann.seen.length === 1 && bob.seen.length === 1)
  const cut = await ask('PUT', '/api/chat/regions/tokyo/link', { state: 'cut' })
  assert.deepEqual(cut, { region: 'tokyo', state: 'cut', delayMs: 0, clients: 1 })
  const replies = [await ann.client.send({ text: 'Pizza' }, { replyTo: identity })]
  replies.push(await bob.client.send({ text: 'Sushi' }, { replyTo: identity }))
  await Promise.all(replies.map(({ accepted }) => accepted))
  await until('each sees its own', () => ann.seen.length === 2 && bob.seen.length === 2)
  assert.deepEqual(
    [textsOf(ann), textsOf(bob)],
    [
      ['Lunch?', 'Pizza'],
      ['Lunch?', 'Sushi'],
    ],
  )
  await ask('PUT', '/api/chat/regions/tokyo/link', { state: 'joined' })
  await until('both saw both', () => ann.seen.length === 3 && bob.seen.length === 3)
  await until('one order for both', () => ann.final.size === 3 && bob.final.size === 3)
  assert.deepEqual(ann.final, bob.final)
  for (const region of ['frankfurt', 'tokyo']) await checkHistory(region)

  async function checkHistory(region: string): Promise<void> {
    const path = `/api/chat/rooms/plans/messages?region=${region}`
    const { messages } = (await ask('GET', path)) as { messages: readonly HistoryMessage[] }
    assert.deepEqual(new Map(messages.map((each) => [identityText(each), each.final])), ann.final)
    const [question, one, two] = messages
    assert.ok(question && one && two)
    assert.deepEqual([one.replyTo, two.replyTo], [identity, identity])
    // Neither knew of the other, and both knew of the question.
    const [annName, bobName] = [ann.client.identity.client, bob.client.identity.client]
    assert.deepEqual(
      new Set([one, two].map(({ clock }) => JSON.stringify([clock[annName] ?? 0, clock[bobName] ?? 0]))),
      new Set(['[2,0]', '[1,1]']),
    )
    const events = fromShiViz((await ask('GET', `/api/chat/rooms/plans/shiviz?region=${region}`)) as string)
    assert.deepEqual(
      events.map(({ clock }) => clock),
      messages.map(({ clock }) => clock),
    )
  }
})

test('a client that is taken off the network comes back with nothing lost; a slow link is slow', async () => {
  const [ann, bob] = [await enter('weather', 'frankfurt'), await enter('weather', 'frankfurt')]
  await (await ann.client.send({ text: 'before' })).accepted
  const name = ann.client.identity.client
  await ask('PUT', `/api/chat/clients/${name}/link`, { offlineMs: 600_000 })
  await until('she is off', () => ann.client.status === 'connecting')
  const mine = await ann.client.send({ text: 'from the cellar' })
  await (await bob.client.send({ text: 'are you there?' })).accepted
  assert.equal(ann.client.pending, 1)
  const back = (await ask('PUT', `/api/chat/clients/${name}/link`, { delayMs: 250 })) as { offlineUntil: string | null }
  assert.equal(back.offlineUntil, null)
  await mine.accepted
  const beganMs = performance.now()
  await (await ann.client.send({ text: 'slowly' })).accepted
  assert.ok(performance.now() - beganMs >= 490)
  await until('both saw all', () => ann.seen.length === 4 && bob.seen.length === 4)
  assert.deepEqual(textsOf(ann), ['before', 'are you there?', 'from the cellar', 'slowly'])
})

test('rooms belong to workspaces, and only callers with the right enter', async () => {
  await ask('PUT', '/api/admin/workspaces/other', { name: 'Other' }, operatorToken)
  const key = await keyOf('other', 'eve')
  const [ann, eve] = [await enter('secret', 'frankfurt'), await enter('secret', 'frankfurt', key)]
  await (await ann.client.send({ text: 'ours' })).accepted
  await (await eve.client.send({ text: 'theirs' })).accepted
  await until('each sees its own', () => ann.seen.length === 1 && eve.seen.length === 1)
  assert.deepEqual([textsOf(ann), textsOf(eve)], [['ours'], ['theirs']])
  assert.equal(await refusalOf(socketUrl('frankfurt'), 'wrong-key'), 401)
  assert.equal(await refusalOf(socketUrl('atlantis'), demoKey), 404)
  const rights = { rights: ['messages'] }
  await ask('PUT', '/api/admin/workspaces/other/callers/eve/rights', rights, operatorToken)
  assert.equal(await refusalOf(socketUrl('frankfurt'), key), 403)
  await ask('PUT', '/api/admin/workspaces/other/callers/eve/rights', { rights: ['chat'] }, operatorToken)
})

test('a caller cannot take over the client name of another caller, whatever the generation', async () => {
  await ask('PUT', '/api/admin/workspaces/shared', { name: 'Shared' }, operatorToken)
  const [annKey, malKey] = [await keyOf('shared', 'ann'), await keyOf('shared', 'mallory')]
  const ann = await enter('open', 'frankfurt', annKey)
  await (await ann.client.send({ text: 'mine' })).accepted
  const { client } = ann.client.identity
  for (const region of ['frankfurt', 'tokyo']) {
    const storage = createMemoryStorage()
    await storage.identify({ client, epoch: 1, generation: 2 ** 40 })
    const mallory = await enter('open', region, malKey, storage)
    await (await mallory.client.send({ text: `also mine, says ${region}` })).accepted
    assert.notEqual(mallory.client.identity.client, client)
  }
  assert.deepEqual([ann.client.status, ann.client.identity.client], ['live', client])
  // The owner keeps its client name in another region; another window gets another name.
  ann.client.moveTo('tokyo')
  await (await ann.client.send({ text: 'from tokyo' })).accepted
  const window = await enter('open', 'frankfurt', annKey)
  await until('the window has seen all messages', () => window.seen.length === 4)
  assert.deepEqual(
    window.seen.filter((each) => each.client === client).map(({ cseq }) => cseq),
    [1, 2],
  )
})

async function refusalOf(url: string, key: string): Promise<number | undefined> {
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${key}` } })
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>()
  socket.once('unexpected-response', (_request, { statusCode }) => resolve(statusCode))
  socket.once('open', () => reject(new Error('It was let in')))
  socket.once('error', () => {})
  const status = await promise
  socket.terminate()
  return status
}

test('the demo key is for pages on this machine only', async () => {
  const demo = async (headers: Record<string, string>) => (await fetch(`${service.url}/chat/demo`, { headers })).status
  assert.equal(await demo({}), 200)
  assert.equal(await demo({ 'sec-fetch-site': 'cross-site' }), 404)
  const { promise, resolve } = Promise.withResolvers<number | undefined>()
  get(`${service.url}/chat/demo`, { headers: { host: 'evil.example' } }, ({ statusCode }) => resolve(statusCode))
  assert.equal(await promise, 404)
})

test('a request that offers another upgrade is answered as if it had not', async () => {
  const { promise, resolve } = Promise.withResolvers<number | undefined>()
  const headers = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': '' }
  get(`${service.url}/healthz`, { headers }, ({ statusCode }) => resolve(statusCode))
  assert.equal(await promise, 200)
})
