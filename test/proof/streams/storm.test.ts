import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDatabase } from '../../../tools/servers/database.ts'
import { runStorm } from './storm.ts'

const databaseUrl = process.env['ONCEONLY_TEST_POSTGRES_URL']
const natsUrl = process.env['ONCEONLY_TEST_NATS_URL']
if ((databaseUrl === undefined || natsUrl === undefined) && process.env['CI'] === 'true') {
  throw new Error('ONCEONLY_TEST_POSTGRES_URL and ONCEONLY_TEST_NATS_URL are not set')
}
const skip = databaseUrl === undefined || natsUrl === undefined ? 'no PostgreSQL or no NATS server' : false

test('twelve clients in three region processes, partitions, a kill, absences and a slow link: all see all, once, in order', {
  skip,
}, async () => {
  await using database = await createDatabase(databaseUrl as string)
  const { messages } = await runStorm({
    clients: 12,
    regions: ['eu', 'us', 'asia'],
    talkMs: 4_000,
    pauseMs: 400,
    offlineMs: 1_500,
    databaseUrl: database.url,
    natsUrl: natsUrl as string,
    seed: 1,
  })
  assert.ok(messages > 50, `${messages} messages`)
})
