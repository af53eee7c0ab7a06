import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { DAY } from 'onceonly'
import type { Result } from './channel.ts'
import { callProvider } from './http.ts'

/** What one answer of a provider comes to. */
async function resultOf(status: number, headers: Readonly<Record<string, string>> = {}): Promise<Result> {
  const server = createServer((_request, response) => response.writeHead(status, headers).end())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  try {
    return await callProvider(`http://127.0.0.1:${port}/`, { body: '{}' }, ({ id }) => id, 'own')
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

test('a refusal of the message is no refusal of the call', async () => {
  for (const status of [400, 402, 422]) {
    const result = await resultOf(status)
    assert.deepEqual([result.kind, 'aboutCall' in result], ['failed', false], String(status))
  }
  for (const status of [401, 403, 404, 405, 409, 410, 413, 415]) {
    const result = await resultOf(status)
    assert.deepEqual([result.kind, 'aboutCall' in result], ['failed', true], String(status))
  }
})

test('a redirect may follow a POST that was accepted, unless it asks for the same POST', async () => {
  for (const status of [301, 302, 303]) {
    assert.equal((await resultOf(status, { location: '/done' })).kind, 'unknown', String(status))
  }
  for (const status of [307, 308]) {
    assert.equal((await resultOf(status, { location: '/other' })).kind, 'failed', String(status))
  }
})

test('a time is kept as it is named, and anything else gets the usual back-off', async () => {
  const timeOf = async (text: string, status = 429) => {
    const result = await resultOf(status, { 'retry-after': text })
    return result.kind === 'not_now' ? (result.retryAfterMs ?? 'back-off') : result.kind
  }
  assert.equal(await timeOf('7'), 7_000)
  assert.equal(await timeOf('99999999999'), 99_999_999_999_000)
  const inADay = await timeOf(new Date(Date.now() + DAY).toUTCString())
  assert.ok(typeof inADay === 'number' && inADay > DAY / 2 && inADay <= DAY, String(inADay))
  for (const text of ['0', '-5', '1.5', 'soon 5', 'Wed, 21 Oct 2015 07:28:00 GMT']) {
    assert.equal(await timeOf(text), 'back-off', text)
  }
  assert.equal(await timeOf('0', 503), 'back-off', 'a time, though one that has passed')
  assert.equal(await timeOf('-5', 503), 'unknown', 'no time at all')
})
