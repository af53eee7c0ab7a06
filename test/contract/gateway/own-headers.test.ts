import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openCounting, openGateway, things } from '../../support/gateway/world.ts'

const strange = { authorization: 'Bearer another-caller' }

test('what the gateway says itself is kept by no cache and read as what it is', async (context) => {
  const upstream = await openCounting(context)
  const metrics = { contentType: 'text/plain', text: async () => 'a 1' }
  const world = await openGateway(context, upstream.url, [things], {}, undefined, metrics)
  const get = (path: string) => ({ method: 'GET', path, key: null, body: null })
  const asked = [
    get('/.onceonly/live'),
    get('/.onceonly/ready'),
    get('/.onceonly/metrics'),
    get('/.onceonly/operations/none'),
    get('/.onceonly/problems/outcome-unknown'),
    { key: null },
    { key: 'two words\u00e9' },
    { path: '/%zz' },
  ]
  for (const each of asked) {
    const { headers, status } = await world.ask(each)
    const what = `${JSON.stringify(each)} ${status}`
    assert.equal(headers.get('x-content-type-options'), 'nosniff', what)
    if (!what.includes('problems/')) assert.equal(headers.get('cache-control'), 'no-store', what)
  }
  assert.equal(upstream.heads, 0)
  const page = await world.ask({ ...get('/.onceonly/live'), headers: strange })
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'.*frame-ancestors 'none'/)
  const passed = await world.ask({ ...get('/things'), headers: strange })
  assert.equal(passed.headers.get('x-content-type-options'), null, 'what the service says stays its own')
})

test('ietf: a missing key is answered with a link to the documentation, which is there', async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url, [{ ...things, profile: 'ietf' }])
  const { status, headers, body } = await world.ask({ key: null })
  assert.equal(status, 400)
  const [, place = '', attributes = ''] = /^<([^>]*)>; (.*)$/.exec(headers.get('link') ?? '') ?? []
  assert.equal(attributes, 'rel="describedby"; type="text/html"')
  assert.equal((JSON.parse(body) as { type: string }).type, place)
  const page = await fetch(new URL(place, `http://127.0.0.1:${world.port}`), { headers: { accept: 'text/html' } })
  assert.equal(page.status, 200)
  assert.match(await page.text(), /<h1>An idempotency key is required<\/h1>/)
})

test('ietf: with an absolute `problemBase` both are absolute', async (context) => {
  const upstream = await openCounting(context)
  const problemBase = 'https://errors.example/keys'
  const world = await openGateway(context, upstream.url, [{ ...things, profile: 'ietf' }], { problemBase })
  const { headers, body } = await world.ask({ key: null })
  const type = `${problemBase}/idempotency-key-missing`
  assert.equal((JSON.parse(body) as { type: string }).type, type)
  assert.equal(headers.get('link'), `<${type}>; rel="describedby"; type="text/html"`)
})
