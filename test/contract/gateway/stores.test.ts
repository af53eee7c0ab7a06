import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import { createDatabase } from '../../../tools/servers/database.ts'
import { startGateway, temporaryFolder } from '../../support/gateway/process.ts'
import { openCounting, things } from '../../support/gateway/world.ts'

const root = join(import.meta.dirname, '../../..')
const postgresUrl = process.env['ONCEONLY_TEST_POSTGRES_URL']
const redisUrl = process.env['ONCEONLY_TEST_REDIS_URL']

/** Drivers come from the folder of the command; what one process records, the next one knows. */
async function survivesRestart(context: TestContext, store: string): Promise<void> {
  const folder = await temporaryFolder(context)
  const upstream = await openCounting(context)
  const options = { config: { upstream: upstream.url, routes: [things] }, store, cwd: root }
  const key = `restart-${process.pid}-${Date.now()}`
  const first = await startGateway(context, folder, options)
  assert.equal((await first.ask({ key })).status, 201)
  assert.equal(await first.terminate(), 0)
  const second = await startGateway(context, folder, options)
  const retry = await second.ask({ key })
  assert.deepEqual([retry.status, retry.body, retry.replayed, upstream.heads], [201, '{"got":12}', true, 1])
  assert.equal(await second.terminate(), 0)
}

test('records in PostgreSQL', { skip: postgresUrl === undefined && 'no PostgreSQL' }, async (context) => {
  const database = await createDatabase(postgresUrl ?? '')
  context.after(() => database.drop())
  await survivesRestart(context, database.url)
})

test('records in Redis', { skip: redisUrl === undefined && 'no Redis' }, (context) =>
  survivesRestart(context, redisUrl ?? ''),
)

test('a missing store or driver is reported in one sentence', async (context) => {
  const folder = await temporaryFolder(context)
  const options = { config: { upstream: 'http://127.0.0.1:1' }, store: 'postgres://127.0.0.1:1/x' }
  await assert.rejects(startGateway(context, folder, options), /ended before it listened/)
  await assert.rejects(startGateway(context, folder, { ...options, cwd: root }), /ended before it listened/)
})
