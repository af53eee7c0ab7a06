import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { demoKey, openedService, operatorToken } from '../../support/service/openapi/opened.ts'
import { raw } from '../gateway/wire.ts'

const { service, ...opened } = await openedService()
after(() => opened[Symbol.asyncDispose]())

/** What may be cached for a while: it is the same for every client. */
const KEPT = /^\/($|console|chat$|docs\/|problems\/)/

function check(what: string, path: string, { headers }: Pick<Response, 'headers'>): void {
  assert.equal(headers.get('x-content-type-options'), 'nosniff', what)
  assert.equal(headers.get('referrer-policy'), 'no-referrer', what)
  const policy = headers.get('content-security-policy') ?? ''
  const isFile = headers.get('cache-control')?.includes('immutable') === true
  if (!isFile) assert.match(policy, /default-src 'none'.*frame-ancestors 'none'/, what)
  const type = headers.get('content-type') ?? ''
  if (type.includes('json') || !KEPT.test(path)) assert.equal(headers.get('cache-control'), 'no-store', what)
  if (!path.startsWith('/problems/')) assert.doesNotMatch(policy, /unsafe/, what)
  // A page that could not run its own script would be none.
  if (type.startsWith('text/html') && !path.startsWith('/problems/')) assert.match(policy, /script-src '/, what)
}

const asked = (path: string, init: RequestInit = {}) =>
  fetch(service.url + path, { signal: AbortSignal.timeout(60_000), ...init })

test('every route that the server declares answers with the headers, to strangers and to callers', async () => {
  assert.ok(service.routes.length > 40)
  for (const { method, path } of service.routes) {
    const target = path.replace(/\{\w+\}/g, 'some').replace('*', 'some')
    for (const key of [null, demoKey, operatorToken]) {
      const headers = {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        'content-type': 'application/json',
      }
      const body = method === 'GET' || method === 'DELETE' ? {} : { body: '{}' }
      const response = await asked(target, { method, headers, ...body })
      check(`${method} ${target} ${response.status}`, target, response)
      await response.body?.cancel()
    }
  }
})

test('so do a command and its replay, pages, streams, and what no route answers', async () => {
  const bearer = { authorization: `Bearer ${demoKey}` }
  const command = {
    method: 'POST',
    headers: { ...bearer, 'content-type': 'application/json', 'idempotency-key': 'headers-1' },
    body: JSON.stringify({ caseId: 'CASE-100', targetQueue: 'LEGAL_REVIEW' }),
  }
  for (const replayed of [null, 'true']) {
    const response = await asked('/case-escalations', command)
    assert.deepEqual([response.status, response.headers.get('idempotent-replayed')], [201, replayed])
    check(`escalated, replayed ${replayed}`, '/case-escalations', response)
    await response.body?.cancel()
  }
  for (const path of [
    '/',
    '/docs',
    '/chat',
    '/console',
    '/nowhere',
    '/%zz',
    '/api/chat/regions',
    '/problems/internal',
  ]) {
    const response = await asked(path, { headers: { ...bearer, accept: 'text/html' } })
    check(path, path, response)
    await response.body?.cancel()
  }
  const live = await asked('/api/console/live', { headers: { authorization: `Bearer ${operatorToken}` } })
  assert.match(String(live.headers.get('content-type')), /event-stream/)
  check('the live stream', '/api/console/live', live)
  await live.body?.cancel()
  const broken = await raw(Number(new URL(service.url).port), 'GET / HTTP/9.9\r\n\r\n')
  assert.match(broken, /^HTTP\/1\.1 400 .*nosniff/is)
  assert.match(broken, /cache-control: no-store/i)
})
