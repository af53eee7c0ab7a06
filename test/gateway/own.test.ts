import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openCounting, openGateway, things } from './world.ts'

test('the status of an operation is told to whoever asked for it, and never more than a replay would', async (context) => {
  let allowed = true
  const upstream = await openCounting(context, (_request, response, { url }) =>
    url === '/me'
      ? response.writeHead(allowed ? 204 : 403).end()
      : response.writeHead(201, { 'content-type': 'text/plain' }).end('secret'),
  )
  const { replay: _trusted, ...rule } = things
  const caller = { header: 'x-user' }
  const world = await openGateway(context, upstream.url, [
    { ...rule, path: '/trusted', caller, replay: 'trusted' },
    { ...rule, path: '/minimal', caller },
    { ...rule, path: '/asked', caller, authorize: { path: '/me' } },
    { ...rule, path: '/named', operation: 'thing.make', caller: 'shared', authorize: { path: '/me' } },
  ])
  const ann = { 'x-user': 'ann', authorization: 'Bearer ann' }
  const look = async (path: string, headers: Readonly<Record<string, string>> = ann) => {
    const operation = path === '/named' ? 'thing.make' : `POST ${path}`
    const { rows } = await world.ledger.list({})
    const id = rows.find(({ record }) => record.identity.operation === operation)?.record.id
    const told = await world.ask({ method: 'GET', path: `/.onceonly/operations/${id}`, key: null, body: null, headers })
    return `${told.status} ${told.body.includes('secret')} ${told.body.includes('credentials')}`
  }
  for (const path of ['/trusted', '/minimal', '/asked', '/named']) await world.ask({ path, headers: ann })
  assert.deepEqual(
    [await look('/trusted'), await look('/minimal'), await look('/asked'), await look('/named')],
    ['200 true false', '200 false false', '200 true false', '200 true false'],
  )
  // Another caller, other credentials, lost access: nothing, not even that it exists.
  assert.equal(await look('/trusted', { 'x-user': 'bob' }), '404 false false')
  assert.equal(await look('/minimal', { ...ann, authorization: 'Bearer stolen' }), '404 false false')
  allowed = false
  assert.deepEqual([await look('/asked'), await look('/named')], ['404 false false', '404 false false'])
})

test("readiness and life have paths of their own; what only looks like them is the upstream's", async (context) => {
  const upstream = await openCounting(context)
  const world = await openGateway(context, upstream.url)
  const get = async (path: string) => (await world.ask({ method: 'GET', path, body: null })).body
  assert.deepEqual([await get('/.onceonly/ready'), await get('/.onceonly/live')], ['{"ready":true}', '{"live":true}'])
  assert.equal(upstream.heads, 0)
  await get('/.onceonly-not')
  await get('/ready')
  assert.equal(upstream.heads, 2)
})
