import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { test } from 'node:test'
import { openCounting, openGateway, things } from '../../support/gateway/world.ts'

/** Resolved as URLs, as many services do, their path is `/v1/pay`. */
const resolved = [
  '//evil/v1/pay',
  '///evil/v1/pay',
  '//user@evil:80/v1/pay',
  '//[::1]/v1/pay',
  '//evil/x/../v1/pay',
  'http://shop.example//evil/v1/pay',
]

async function post(port: number, path: string): Promise<number> {
  const headers = { 'content-type': 'application/json' }
  const asked = request({ port, host: '127.0.0.1', method: 'POST', path, headers }).end('{}')
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  answer.resume()
  return answer.statusCode ?? 0
}

test('a rule with a required key cannot be slipped past by a host in the path', async (context) => {
  const upstream = await openCounting(context, ({ url = '' }, response) =>
    response.end(new URL(url, 'http://service').pathname),
  )
  const { port } = await openGateway(context, upstream.url, [{ ...things, path: '/v1/pay' }])
  for (const path of resolved) {
    const origin = path.replace(/^http:\/\/[^/]*/, '')
    assert.equal(new URL(origin, 'http://service').pathname, '/v1/pay', path)
    assert.equal(await post(port, path), 400, path)
  }
  assert.equal(upstream.heads, 0)
  // What is no spelling of it is passed on.
  for (const path of ['//evil/v2/pay', '//v1']) assert.equal(await post(port, path), 200, path)
})
