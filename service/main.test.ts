import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { ended, start, startedService } from './test-service.ts'

/** Far above what it takes, and well below the time after which Node would close it. */
const SILENT_MOST_MS = 40_000

test('it is healthy, shows a page, and ends well when it is asked to', async () => {
  await using service = await startedService()
  const health = await service.get('/healthz')
  assert.equal(health.status, 200)
  assert.deepEqual(await health.json(), { status: 'ok' })
  const page = await service.get('/')
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
  assert.match(await page.text(), /<h1>Onceonly<\/h1>/)
  // Browsers open connections in advance; one on which nothing is said must not keep the server from ending.
  const silent = connect(Number(new URL(service.url).port), '127.0.0.1').on('error', () => {})
  await once(silent, 'connect')
  const closed = once(silent, 'close', { signal: AbortSignal.timeout(SILENT_MOST_MS) })
  assert.deepEqual(await Promise.all([service.restart(), closed.then(() => 'closed')]), [0, 'closed'])
})

test('what is not there is a problem document', async () => {
  await using service = await startedService()
  const answer = await service.get('/nowhere')
  assert.equal(answer.status, 404)
  assert.equal(answer.headers.get('content-type'), 'application/problem+json; charset=utf-8')
})

test('--help lists every setting', async () => {
  const { code, out } = await ended(start({}, ['--help']))
  assert.equal(code, 0)
  for (const variable of ['PORT', 'HOST', 'ONCEONLY_DATA']) assert.match(out, new RegExp(`^ +${variable} `, 'm'))
})

for (const [variable, value] of [
  ['PORT', 'many'],
  ['PORT', '65536'],
  ['HOST', 'no host'],
  ['ONCEONLY_DATA', '/dev/null/data'],
] as const) {
  test(`${variable}=${value} stops the start with one line that names it`, async () => {
    const { code, out, err } = await ended(start({ [variable]: value }))
    assert.equal(code, 1)
    assert.equal(out, '')
    assert.match(err, new RegExp(`^${variable}: .+\n$`))
  })
}

test('an option that does not exist is refused', async () => {
  const { code, err } = await ended(start({}, ['--port=1']))
  assert.equal(code, 1)
  assert.match(err, /^--port=1: .+\n$/)
})
