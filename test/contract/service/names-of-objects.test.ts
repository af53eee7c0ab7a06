import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createMemoryPlace, createStreamClient, createWebSocketTransport } from 'onceonly/stream'
import { until } from '../../../src/testing/until.ts'
import { demoKey, openedService } from '../../support/service/openapi/opened.ts'

const { service, ...opened } = await openedService()
after(() => opened[Symbol.asyncDispose]())

test('a client of the chat is called what it is called: its messages are counted, also by others', async () => {
  const seen: string[] = []
  const enter = async (name: string) => {
    const place = createMemoryPlace()
    await place.identify({ client: name, epoch: 1, generation: 1 })
    const url = (region: string) => `${service.url.replace('http', 'ws')}/chat/socket?region=${region}`
    const client = await createStreamClient({
      room: 'odd-names',
      regions: ['frankfurt'],
      transport: createWebSocketTransport({ url, token: () => demoKey }),
      mode: 'at-least-once',
      place,
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

test('a command with such members is refused, and changes no object', async () => {
  const headers = { authorization: `Bearer ${demoKey}`, 'content-type': 'application/json' }
  for (const path of ['/case-escalations', '/api/messages', '/api/imports', '/api/sequences']) {
    for (const body of [
      '{"__proto__":{"polluted":true},"name":"x"}',
      '{"constructor":{"prototype":{"polluted":true}},"name":"x"}',
    ]) {
      const response = await fetch(service.url + path, { method: 'POST', headers, body })
      assert.equal(response.status, 400, `${path} ${await response.text()}`)
    }
  }
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
})
