import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { Client } from 'pg'
import { createDatabase } from '../../../../tools/servers/database.ts'
import { type Servers, startServers } from '../../../../tools/servers/index.ts'

suite('a database of one test', () => {
  let servers: Servers
  before(async () => {
    servers = await startServers(['postgres'], { log: () => {} })
  })
  after(() => servers.stop())

  test('is empty, its own, and dropped afterwards even with an open connection', async (t) => {
    const adminUrl = servers.env['ONCEONLY_TEST_POSTGRES_URL']
    if (adminUrl === undefined) return t.skip('there is no PostgreSQL server')

    const [one, two] = await Promise.all([createDatabase(adminUrl), createDatabase(adminUrl)])
    assert.notEqual(one.url, two.url)
    const client = new Client({ connectionString: one.url })
    // Two errors: the server says why, and then the connection ends.
    const broken = new Promise((resolve) => client.on('error', resolve))
    await client.connect()
    await client.query('CREATE TABLE note (text text)')
    const other = new Client({ connectionString: two.url })
    await other.connect()
    await assert.rejects(other.query('SELECT * FROM note'), { code: '42P01' })
    await other.end()

    await Promise.all([one.drop(), two.drop()])
    await broken
    await assert.rejects(new Client({ connectionString: one.url }).connect(), { code: '3D000' })
    await one.drop()
  })
})
