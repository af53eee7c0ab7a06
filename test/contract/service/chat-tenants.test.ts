import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { createMemoryStorage, createStreamClient, createWebSocketTransport } from 'onceonly/stream'
import { WebSocket } from 'ws'
import { prefixOf, ROOM_CHARS_MOST, roomOf } from '../../../service/chat/words.ts'
import { isStreamName } from '../../../src/streams/protocol/fields.ts'
import { until } from '../../../src/testing/until.ts'
import { demoKey, openedService, operatorToken } from '../../support/service/openapi/opened.ts'

const { service, ...opened } = await openedService()
after(() => opened[Symbol.asyncDispose]())

async function clientsOf(key: string, region: string): Promise<number | undefined> {
  const response = await fetch(`${service.url}/api/chat/regions`, { headers: { authorization: `Bearer ${key}` } })
  const { regions } = (await response.json()) as { regions: readonly { region: string; clients: number }[] }
  return regions.find((each) => each.region === region)?.clients
}

async function keyOfAnother(): Promise<string> {
  const headers = { authorization: `Bearer ${operatorToken}`, 'content-type': 'application/json' }
  const workspace = `${service.url}/api/admin/workspaces/other`
  await fetch(workspace, { method: 'PUT', headers, body: JSON.stringify({ name: 'Other' }) })
  const made = await fetch(`${workspace}/keys`, { method: 'POST', headers, body: JSON.stringify({ caller: 'eve' }) })
  return ((await made.json()) as { key: string }).key
}

test('a workspace sees how many of its own clients a region has, and no clients of other workspaces', async () => {
  const other = await keyOfAnother()
  const url = `${service.url.replace('http', 'ws')}/chat/socket?region=tokyo`
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${demoKey}` } })
  await once(socket, 'open')
  await until('it is counted', async () => (await clientsOf(demoKey, 'tokyo')) === 1)
  assert.equal(await clientsOf(other, 'tokyo'), 0)
  assert.equal(await clientsOf(demoKey, 'sydney'), 0)
  socket.terminate()
  await until('it is gone', async () => (await clientsOf(demoKey, 'tokyo')) === 0)
})

test('the prefix that separates the rooms of workspaces has at least 128 bits and is a valid stream name', () => {
  const digest = prefixOf('demo').slice(1, -1)
  assert.ok(digest.length * 6 >= 128, digest)
  for (const workspace of Array.from({ length: 200 }, (_, at) => `workspace-${at}`)) {
    assert.ok(isStreamName(roomOf(workspace, 'r'.repeat(ROOM_CHARS_MOST))), roomOf(workspace, 'r'))
  }
})

test('clients named like properties of Object work: their messages are counted, also by other clients', async () => {
  const seen: string[] = []
  const enter = async (name: string) => {
    const storage = createMemoryStorage()
    await storage.identify({ client: name, epoch: 1, generation: 1 })
    const url = (region: string) => `${service.url.replace('http', 'ws')}/chat/socket?region=${region}`
    const client = await createStreamClient({
      room: 'odd-names',
      regions: ['frankfurt'],
      transport: createWebSocketTransport({ url, token: () => demoKey }),
      mode: 'at-least-once',
      storage,
      from: 'start',
      receiver: { message: ({ client: from }) => void seen.push(`${name} saw ${from}`), ordered: () => {} },
    })
    after(() => client.stop())
    return client
  }
  const [first, second] = [await enter('constructor'), await enter('toString')]
  for (const text of ['one', 'two']) await (await first.send({ text })).accepted
  const saw = () => seen.filter((each) => each === 'toString saw constructor').length
  await until('the second has seen both', () => saw() === 2)
  await (await second.send({ text: 'three' })).accepted
  const headers = { authorization: `Bearer ${demoKey}` }
  const response = await fetch(`${service.url}/api/chat/rooms/odd-names/messages`, { headers })
  const { messages } = (await response.json()) as { messages: readonly { readonly clock: unknown }[] }
  assert.deepEqual(
    messages.map(({ clock }) => clock),
    [{ constructor: 1 }, { constructor: 2 }, { constructor: 2, toString: 1 }] as readonly unknown[],
  )
})
