import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Redis } from 'ioredis'
import { Client } from 'pg'
import { SERVER_VARIABLES } from '../../../tools/servers/index.ts'
import { startGateway, temporaryFolder } from '../../support/gateway/process.ts'
import { openCounting, things } from '../../support/gateway/world.ts'
import { startOwn } from '../../support/own-server.ts'
import { openCluster, type TestServer } from '../../support/service/cluster.ts'
import { filesIn, foundIn, foundInFolder, secrets, work } from '../../support/service/secrets.ts'

const keys = { ONCEONLY_ENCRYPTION_KEYS: `k1=${randomBytes(32).toString('base64')}` }

/** The log reads by the same rule: no line and no error of the process has a secret. */
function foundInLines(server: TestServer): string[] {
  return foundIn(Buffer.from([...server.lines, ...server.errors].join('\n')), 'the log')
}

test('a stolen folder of SQLite, with what a crash leaves beside it, and a log show no secret', async () => {
  await using cluster = await openCluster('sqlite', { env: { ...keys, ONCEONLY_LOG_LEVEL: 'debug' } })
  const [server] = cluster.servers as [TestServer]
  await work(server)
  const folder = join(cluster.address, '..')
  const running = foundInFolder(folder)
  await server.kill()
  assert.deepEqual([...running, ...foundInFolder(folder), ...foundInLines(server)], [])
})

test('the files of PostgreSQL, its log of changes included, and a dump of Redis show no secret', async () => {
  await using postgres = await startOwn('postgres')
  await using redis = await startOwn('redis')
  const url = postgres.env[SERVER_VARIABLES.postgres] ?? ''
  const claims = redis.env[SERVER_VARIABLES.redis] ?? ''
  const uploads = await mkdtemp(join(tmpdir(), 'onceonly-thief-'))
  after(() => rm(uploads, { recursive: true, force: true }))
  await using cluster = await openCluster('sqlite', {
    env: { ...keys, ONCEONLY_STORE: url, ONCEONLY_CLAIMS: claims, ONCEONLY_UPLOADS: uploads },
  })
  const [server] = cluster.servers as [TestServer]
  await work(server)
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query('checkpoint')
  const { rows } = await client.query<{ folder: string }>(`select current_setting('data_directory') as folder`)
  await client.end()
  const memory = new Redis(claims)
  await memory.save()
  const [, dir = ''] = (await memory.config('GET', 'dir')) as string[]
  memory.disconnect()
  const found = [rows[0]?.folder ?? '', uploads, dir].flatMap(foundInFolder)
  assert.deepEqual([...found, ...foundInLines(server)], [])
})

test('the store of a gateway shows no key, amount or answer, and runs nothing again with another key', async (context) => {
  const folder = await temporaryFolder(context)
  const upstream = await openCounting(context, (_request, response) =>
    response.writeHead(201, { 'content-type': 'text/plain' }).end(secrets.upstream),
  )
  const store = join(folder, 'gateway.db')
  const config = { upstream: upstream.url, routes: [{ ...things, path: '/pay', operation: 'pay' }] }
  const gateway = await withKeys(keys.ONCEONLY_ENCRYPTION_KEYS, () => startGateway(context, folder, { store, config }))
  const pay = () => gateway.ask({ path: '/pay', key: secrets.gatewayKey, body: `{"amount":${secrets.amount}}` })
  assert.equal((await pay()).status, 201)
  assert.equal((await pay()).status, 201)
  assert.equal(upstream.seen.length, 1)
  await gateway.kill()
  const found = filesIn(folder)
    .filter((file) => file.includes('gateway.db'))
    .flatMap((file) => foundIn(readFileSync(file), file))
  assert.deepEqual([...found, ...foundIn(Buffer.from(gateway.lines.join('\n')), 'its log')], [])

  // With other keys it would not find what ran, and run it again.
  const another = randomBytes(32).toString('base64')
  for (const wrong of [`k1=${another}`, `k9=${another}`, '']) {
    const refused = withKeys(wrong, () => startGateway(context, folder, { store, config }))
    await assert.rejects(refused, /ended before it listened/)
  }
  const again = await withKeys(keys.ONCEONLY_ENCRYPTION_KEYS, () => startGateway(context, folder, { store, config }))
  const paid = { path: '/pay', key: secrets.gatewayKey, body: `{"amount":${secrets.amount}}` }
  assert.equal((await again.ask(paid)).status, 201)
  assert.equal(upstream.seen.length, 1, 'it was answered from the record')
})

/** What is started by `work` gets these keys. */
async function withKeys<T>(given: string, work: () => Promise<T>): Promise<T> {
  const before = process.env['ONCEONLY_ENCRYPTION_KEYS']
  process.env['ONCEONLY_ENCRYPTION_KEYS'] = given
  try {
    return await work()
  } finally {
    if (before === undefined) delete process.env['ONCEONLY_ENCRYPTION_KEYS']
    else process.env['ONCEONLY_ENCRYPTION_KEYS'] = before
  }
}
