import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { buildPages } from '../../../console/build.ts'
import { BadSetting, readConfig } from '../../../service/config.ts'
import { startService } from '../../../service/service.ts'
import { ended, start, startedService } from '../../support/service/service.ts'

/** Far above what it takes, and well below the time after which Node would close it. */
const SILENT_MOST_MS = 40_000

test('it is healthy, shows a page, and ends well when it is asked to', async () => {
  await buildPages()
  await using service = await startedService()
  const health = await service.get('/healthz')
  assert.equal(health.status, 200)
  assert.deepEqual(await health.json(), { status: 'ok' })
  const page = await service.get('/')
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
  assert.match(await page.text(), /<title>Onceonly<\/title>/)
  // Browsers open connections in advance; a silent one must not keep the server from ending.
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

const CLOSED_PORT = '127.0.0.1:1'

test('a database that is away stops the start with one line that names the setting, and not its secrets', async () => {
  const { code, out, err } = await ended(start({ ONCEONLY_STORE: `postgres://ann:secret@${CLOSED_PORT}/x` }))
  assert.deepEqual([code, out], [1, ''], err)
  assert.match(err, /^ONCEONLY_STORE: the value cannot be used: .*ECONNREFUSED.*\n$/)
  assert.doesNotMatch(err, /secret/)
})

test('so does whatever else keeps the server from starting', async () => {
  const taken = createServer()
  await once(taken.listen(0, '127.0.0.1'), 'listening')
  const { port } = taken.address() as AddressInfo
  const data = await mkdtemp(join(tmpdir(), 'onceonly-start-'))
  const broken = join(data, 'broken')
  await mkdir(broken)
  await writeFile(join(broken, 'onceonly.db'), 'not a database, and long enough to be looked at. '.repeat(99))
  try {
    for (const [variable, value, complaint] of [
      ['PORT', String(port), /cannot be used: .*EADDRINUSE/],
      ['ONCEONLY_DATA', broken, /cannot be used: .*not a database/],
      ['ONCEONLY_STORE', 'postgres://%zz:secret@:x/', /cannot be used: Invalid URL/],
      ['ONCEONLY_STORE', `mysql://ann:secret@${CLOSED_PORT}/x`, /is not a postgres:\/\/ URL/],
      ['ONCEONLY_BROKER', `kafka://ann:secret@${CLOSED_PORT}`, /amqp:\/\/ or .* or nats:\/\//],
      ['ONCEONLY_BROKER', 'amqp://', /names no host/],
      ['ONCEONLY_BROKER', `nats://${CLOSED_PORT}?namespace=a%20secret`, /has a namespace that is not/],
      ['ONCEONLY_CLAIMS', `memcached://ann:secret@${CLOSED_PORT}`, /redis:\/\//],
    ] as const) {
      const env = { PORT: '0', ONCEONLY_DATA: data, ONCEONLY_LOG_LEVEL: 'silent', [variable]: value }
      await assert.rejects(
        async () => startService(readConfig(env)),
        (error: Error) => {
          assert.ok(error instanceof BadSetting, error.stack)
          assert.match(error.message, new RegExp(`^${variable}: .+$`))
          assert.match(error.message, complaint)
          assert.doesNotMatch(error.message, /secret/)
          return true
        },
      )
    }
  } finally {
    taken.close()
    await rm(data, { recursive: true, force: true })
  }
})

test('an option that does not exist is refused', async () => {
  const { code, err } = await ended(start({}, ['--port=1']))
  assert.equal(code, 1)
  assert.match(err, /^--port=1: .+\n$/)
})
