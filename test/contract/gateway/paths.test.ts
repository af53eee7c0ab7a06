import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { test } from 'node:test'
import { openCounting, openGateway, things } from '../../support/gateway/world.ts'

/** As it is written: `fetch` would spell a target anew. */
async function post(
  port: number,
  path: string,
  key: string | null = null,
): Promise<{ status: number; replayed: boolean }> {
  const headers = { 'content-type': 'application/json', ...(key === null ? {} : { 'idempotency-key': key }) }
  const asked = request({ port, host: '127.0.0.1', method: 'POST', path, headers }).end('{}')
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  answer.resume()
  await once(answer, 'end')
  return { status: answer.statusCode ?? 0, replayed: answer.headers['idempotent-replayed'] === 'true' }
}

const pay = { ...things, path: '/v1/pay' }

/** What one service or another takes for `/v1/pay`. */
const alike = [
  '/v1/pay',
  '/v1/pay?x=1',
  'http://shop.example/v1/pay',
  '/V1/PAY',
  '/v1/Pay',
  '/v1/pay/',
  '/v1/pay//',
  '//v1/pay',
  '/v1//pay',
  '/v1/pay;jsessionid=1',
  '/v1;a=b/pay;c',
  '/v1/%70ay',
  '/%76%31/%50%41%59',
  '/v1%2Fpay',
  '/v1%2fpay%2F',
  '/v1%5Cpay',
  '/v1/./pay',
  '/v1/x/../pay',
  '/v1/x/%2e%2e/pay',
  '/v1/x%2F..%2Fpay',
  '/v1/x/..;/pay',
  '/v1/x/..;y=1/pay',
  '/v1/.;/pay',
  '/v1/x//../pay',
  '/v1//../v1/pay',
  '/v1/pay%00',
  '/v1/pay%00.png',
  '/v1/pay%3Bx',
  '/v1/pay/.',
  '/v1/pay/x/..',
]

/** What nothing takes for it. */
const others = ['/v1/payments', '/v1/pay/1', '/v2/v1/pay', '/v1', '/', '/v1/p%2561y', '/v1/pay.json', '/v1/pay%20x']

test('a rule with a required key cannot be slipped past by another spelling of its path', async (context) => {
  const upstream = await openCounting(context)
  const { port } = await openGateway(context, upstream.url, [pay])
  for (const path of alike) assert.equal((await post(port, path)).status, 400, path)
  assert.equal(upstream.heads, 0)
  for (const path of others) assert.equal((await post(port, path)).status, 201, path)
  assert.equal(upstream.heads, others.length)
})

test('names and everything below are found in every spelling, and the first rule that fits decides', async (context) => {
  const upstream = await openCounting(context)
  const routes = [
    { ...things, path: '/v1/charges/:id/refunds' },
    { ...things, path: '/admin/*' },
    { ...things, path: '/Things/' },
    { ...things, method: ['PUT', 'POST'], path: '/a%20b' },
  ]
  const { port } = await openGateway(context, upstream.url, routes)
  const refused = [
    '/v1/charges/a%2Fb/refunds',
    '/V1/charges/a%2Fb/refunds/',
    '/V1/charges/;x/refunds',
    '/v1/charges/1;x/Refunds',
    '/ADMIN',
    '//admin/x/y',
    '/x/..;/admin/z',
    '/things',
    '/things/',
    '/A%20B',
  ]
  for (const path of refused) assert.equal((await post(port, path)).status, 400, path)
  for (const path of ['/v1/charges//refunds', '/administrator', '/thing']) {
    assert.equal((await post(port, path)).status, 201, path)
  }
})

test('a strict rule, or a strict gateway, has the one path that it names', async (context) => {
  for (const [route, config] of [
    [{ ...pay, strict: true }, {}],
    [pay, { strict: true }],
  ] as const) {
    const upstream = await openCounting(context)
    const { port } = await openGateway(context, upstream.url, [route], config)
    for (const path of ['/v1/pay', '/v1/%70ay', '/v1/x/../pay'])
      assert.equal((await post(port, path)).status, 400, path)
    for (const path of ['/V1/PAY', '/v1/pay/', '//v1/pay', '/v1/pay;x', '/v1%2Fpay']) {
      assert.equal((await post(port, path)).status, 201, path)
    }
  }
  const upstream = await openCounting(context)
  const { port } = await openGateway(context, upstream.url, [{ ...pay, strict: false }], { strict: true })
  assert.equal((await post(port, '/V1/PAY')).status, 400, 'the rule has the last word')
})

test('what is alike for rules is not one resource: it is forwarded and remembered as it came', async (context) => {
  const upstream = await openCounting(context)
  const { port } = await openGateway(context, upstream.url, [pay])
  const spellings = ['/v1/pay', '/V1/pay', '/v1/pay/', '//v1/pay;x']
  for (const path of spellings)
    assert.deepEqual(await post(port, path, 'key-1'), { status: 201, replayed: false }, path)
  for (const path of spellings) assert.deepEqual(await post(port, path, 'key-1'), { status: 201, replayed: true }, path)
  assert.deepEqual(
    upstream.seen.map(({ url }) => url),
    spellings,
  )
})

test('nor by a header that overrides the method', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url, [{ ...things, method: 'DELETE', path: '/things/:id' }])
  const ask = (method: string, headers: Readonly<Record<string, string>>, key: string | null = null) =>
    world.ask({ method, path: '/things/1', key, body: null, headers })
  for (const name of ['x-http-method-override', 'x-http-method', 'x-method-override']) {
    for (const value of ['DELETE', 'delete', 'GET, DELETE']) {
      for (const method of ['POST', 'GET']) {
        assert.equal((await ask(method, { [name]: value })).status, 400, `${method} ${name}: ${value}`)
      }
    }
  }
  assert.equal(upstream.heads, 0)
  const override = { 'x-http-method-override': 'DELETE' }
  for (const replayed of [false, true]) assert.equal((await ask('POST', override, 'key-1')).replayed, replayed)
  assert.equal((await ask('POST', { 'x-http-method-override': 'GET' })).status, 201, 'what changes nothing has no rule')
  assert.deepEqual([upstream.heads, upstream.seen[0]?.method], [2, 'POST'])
})
