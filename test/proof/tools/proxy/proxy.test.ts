import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { after, afterEach, before, beforeEach, suite, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { until } from '../../../../src/testing/until.ts'
import { createConnection } from '../../../../tools/proxy/connection.ts'
import { createProxy, endsPostgresAnswer, type Proxy } from '../../../../tools/proxy/index.ts'
import { createDatabase, type Database } from '../../../../tools/servers/database.ts'
import { type Servers, startServers } from '../../../../tools/servers/index.ts'

suite('a proxy in front of an echo server', () => {
  let echo: Server
  let proxy: Proxy
  beforeEach(async () => {
    echo = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {})
      socket.pipe(socket)
    })
    await once(echo.listen(0, '127.0.0.1'), 'listening')
    proxy = await createProxy({ targetPort: portOf(echo) })
  })
  afterEach(async () => {
    await proxy.stop()
    echo.close()
  })

  test('carries every byte, in order, through its bounded buffers, and the end', async () => {
    const sent = randomBytes(8 * 1_048_576)
    const client = await open(proxy)
    client.end(sent)
    // A reader that is late makes all buffers run full.
    await sleep(50)
    assert(Buffer.concat(await client.toArray()).equals(sent))
    await until('no connection is left', () => proxy.connections === 0)
  })

  test('pauses without breaking', async () => {
    const client = await open(proxy)
    proxy.pause()
    client.write('late')
    // A chance for what must not come yet.
    const early = await Promise.race([once(client, 'data'), sleep(100)])
    assert.equal(early, undefined)
    proxy.resume()
    assert.equal(String((await once(client, 'data'))[0]), 'late')
    client.destroy()
  })

  test('delays each direction', async () => {
    proxy.delayMs = 60
    const client = await open(proxy)
    const startedAtMs = performance.now()
    client.write('ping')
    await once(client, 'data')
    const tookMs = performance.now() - startedAtMs
    assert(tookMs >= 115, `a round trip took ${tookMs} ms`)
    assert.throws(() => (proxy.delayMs = 60_001), /from 0 to 60000 ms/)
    client.destroy()
  })

  test('cuts every connection', async () => {
    const clients = await Promise.all([open(proxy), open(proxy)])
    // A client is connected before the proxy has heard of it.
    await until('both are connected', () => proxy.connections === 2)
    const errors = clients.map((client) => once(client, 'error'))
    proxy.cut()
    for (const [error] of await Promise.all(errors)) assert.equal(error.code, 'ECONNRESET')
    await until('no connection is left', () => proxy.connections === 0)
  })

  test('also one that is just being closed', async () => {
    const accepted = createServer({ allowHalfOpen: true })
    await once(accepted.listen(0, '127.0.0.1'), 'listening')
    const outside = connect({ port: portOf(accepted), host: '127.0.0.1', allowHalfOpen: true })
    outside.on('error', () => {})
    const [client] = (await once(accepted, 'connection')) as [Socket]
    let closed = false
    client.on('close', () => (closed = true))
    const connection = createConnection({
      client,
      target: { host: '127.0.0.1', port: portOf(echo) },
      weather: { paused: false, delayMs: 0 },
      losesAnswerTo: () => false,
      endsAnswer: undefined,
      onClose() {},
    })
    client.end()
    connection.cut()
    await until('it is closed', () => closed)
    outside.destroy()
    accepted.close()
  })

  test('refuses new connections, keeps present ones, and accepts again on the same port', async () => {
    const present = await open(proxy)
    proxy.refuse()
    await assert.rejects(open(proxy), { code: 'ECONNREFUSED' })
    present.write('still here')
    assert.equal(String((await once(present, 'data'))[0]), 'still here')
    await proxy.accept()
    const next = await open(proxy)
    for (const client of [present, next]) client.destroy()
  })

  test('breaks a client whose server is not there', async () => {
    echo.close()
    await once(echo, 'close')
    const client = connect(proxy.port, '127.0.0.1')
    const [error] = await once(client, 'error')
    assert.equal(error.code, 'ECONNRESET')
  })

  test('loses the answer to one request only, and of the connections only that one', async () => {
    const [one, two] = await Promise.all([open(proxy), open(proxy)])
    proxy.dropNextResponse({ when: (request) => request.includes('lose') })
    one.write('keep')
    assert.equal(String((await once(one, 'data'))[0]), 'keep')
    const heard: string[] = []
    two.on('data', (bytes) => heard.push(String(bytes)))
    two.write('lose this')
    assert.equal((await once(two, 'error'))[0].code, 'ECONNRESET')
    assert.deepEqual(heard, [])
    one.write('lose no more')
    assert.equal(String((await once(one, 'data'))[0]), 'lose no more')
    one.destroy()
  })

  test('leads to loopback only', async () => {
    await assert.rejects(createProxy({ targetHost: '192.0.2.1', targetPort: 5432 }), /loopback only/)
    assert.equal(proxy.rewrite('postgres://me@localhost:5432/db?x=1'), `postgres://me@127.0.0.1:${proxy.port}/db?x=1`)
  })
})

suite('a lost acknowledgement', () => {
  let servers: Servers
  let database: Database
  let proxy: Proxy
  let direct: Client
  const adminUrl = () => servers.env['ONCEONLY_TEST_POSTGRES_URL']
  before(async () => {
    servers = await startServers(['postgres'], { log: () => {} })
    const url = adminUrl()
    if (url === undefined) return
    database = await createDatabase(url)
    proxy = await createProxy({ targetPort: Number(new URL(url).port), endsAnswer: endsPostgresAnswer })
    direct = new Client({ connectionString: database.url })
    await direct.connect()
    await direct.query('CREATE TABLE payment (id int PRIMARY KEY)')
  })
  after(async () => {
    if (adminUrl() !== undefined) {
      await direct.end()
      await proxy.stop()
      await database.drop()
    }
    await servers.stop()
  })

  async function connectThroughProxy(): Promise<Client> {
    const client = new Client({ connectionString: proxy.rewrite(database.url) })
    client.on('error', () => {})
    await client.connect()
    return client
  }
  async function ids(): Promise<number[]> {
    return (await direct.query('SELECT id FROM payment ORDER BY id')).rows.map((row) => row.id)
  }

  test('the statement is committed although its client saw a broken connection', async (t) => {
    if (adminUrl() === undefined) return t.skip('there is no PostgreSQL server')
    await direct.query('TRUNCATE payment')
    const client = await connectThroughProxy()
    await client.query('INSERT INTO payment VALUES ($1)', [1])
    proxy.dropNextResponse()
    await assert.rejects(client.query('INSERT INTO payment VALUES ($1)', [2]), /ECONNRESET|terminated/)
    assert.deepEqual(await ids(), [1, 2])
  })

  test('also when the answer is large, and when only the COMMIT is to be lost', async (t) => {
    if (adminUrl() === undefined) return t.skip('there is no PostgreSQL server')
    await direct.query('TRUNCATE payment')
    const large = await connectThroughProxy()
    proxy.dropNextResponse()
    const insert = 'INSERT INTO payment SELECT generate_series(1, 200000) RETURNING id'
    await assert.rejects(large.query(insert), /ECONNRESET|terminated/)
    assert.equal((await ids()).length, 200_000)

    await direct.query('TRUNCATE payment')
    const client = await connectThroughProxy()
    proxy.dropNextResponse({ when: (request) => request.includes('COMMIT') })
    await client.query('BEGIN')
    await client.query('INSERT INTO payment VALUES (3)')
    await assert.rejects(client.query('COMMIT'), /ECONNRESET|terminated/)
    assert.deepEqual(await ids(), [3])
  })

  test('on every connection at once', async (t) => {
    if (adminUrl() === undefined) return t.skip('there is no PostgreSQL server')
    await direct.query('TRUNCATE payment')
    const clients = await Promise.all([connectThroughProxy(), connectThroughProxy()])
    const inserts = clients.map((client, index) => client.query('INSERT INTO payment VALUES ($1)', [index]))
    proxy.cutResponses()
    for (const insert of await Promise.allSettled(inserts)) assert.equal(insert.status, 'rejected')
    assert.deepEqual(await ids(), [0, 1])
  })
})

async function open(proxy: Proxy): Promise<Socket> {
  const socket = connect(proxy.port, '127.0.0.1')
  await once(socket, 'connect')
  return socket
}

function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}
