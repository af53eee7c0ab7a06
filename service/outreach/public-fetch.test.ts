import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { createPublicFetch } from './public-fetch.ts'
import { isInside, isPublic } from './public-host.ts'

let server: Server
let port = 0
let requests = 0
before(async () => {
  server = createServer((request, response) => {
    requests += 1
    if (request.url === '/away') response.writeHead(307, { location: 'http://example.com/' }).end()
    else if (request.url === '/nothing') response.writeHead(204).end()
    else if (request.url === '/later') response.writeHead(503, { 'retry-after': '7' }).end('later')
    else request.pipe(response.writeHead(201, { 'content-type': 'application/json' }))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  port = (server.address() as AddressInfo).port
})
after(() => {
  server.closeAllConnections()
  server.close()
})

const post = { method: 'POST', body: '{"a":1}', headers: { 'idempotency-key': 'k' } }

test('nothing inside the network is reached, however it is written', async () => {
  const closed = createPublicFetch(['example.com', '127.0.0.1:1'])
  const hosts = ['127.0.0.1', 'localhost', '2130706433', '0x7f.1', '0177.0.0.1', '127.1', '0', '0.0.0.0']
  for (const host of [...hosts, '[::1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '10.0.0.1', '169.254.169.254']) {
    const why = await closed(`http://${host}:${port}/`, post).then(
      () => assert.fail(`${host} was reached`),
      (error: unknown) => error as { verdict?: string; message: string },
    )
    assert.equal(why.verdict, 'final', `${host}: ${why.message}`)
    assert.match(why.message, /not a public address/)
  }
  assert.equal(requests, 0)
})

test('a name that leads inside, whatever it was when it was stored, is not reached', async () => {
  const asked: string[] = []
  const answers = [
    [{ address: '127.0.0.1', family: 4 }],
    [
      { address: '8.8.8.8', family: 4 },
      { address: '::1', family: 6 },
    ],
  ]
  const resolve = (name: string, _options: unknown, done: (error: null, found: unknown) => void) => {
    asked.push(name)
    done(null, answers[asked.length - 1])
  }
  const closed = createPublicFetch([], resolve as never)
  for (const _ of answers) {
    await assert.rejects(closed(`http://moved.example.com:${port}/`, post), /example\.com is not a public address/)
  }
  assert.deepEqual([asked.length, requests], [answers.length, 0])
})

test('a URL shows by itself when it can only lead inside', () => {
  const inside = ['localhost', 'LOCALHOST.', 'a.localhost', 'db', 'printer.local', 'x.internal.', 'nas.home.arpa']
  for (const host of [...inside, '127.0.0.1', '0x7f.1', '[::1]', '[fd00::1]', '169.254.169.254', '192.168.0.1']) {
    assert.ok(isInside(new URL(`https://${host}/in`), ['10.0.0.1']), host)
  }
  for (const host of ['example.com', 'local.example.com', '8.8.8.8', '[2606:4700::1]', '10.0.0.1']) {
    assert.ok(!isInside(new URL(`https://${host}/in`), ['10.0.0.1']), host)
  }
  assert.ok(!isInside(new URL('http://db:8080/'), ['db:8080']))
  assert.ok(isInside(new URL('http://db:8081/'), ['db:8080']))
})

test('what an operator has named is reached, by host or by host and port', async () => {
  for (const named of ['127.0.0.1', `127.0.0.1:${port}`]) {
    const answer = await createPublicFetch([named])(`http://127.0.0.1:${port}/`, post)
    assert.deepEqual([answer.status, await answer.json()], [201, { a: 1 }])
  }
  const open = createPublicFetch(['localhost'])
  assert.equal((await open(`http://localhost:${port}/nothing`, post)).status, 204)
  const later = await open(`http://localhost:${port}/later`, post)
  assert.deepEqual([later.status, later.headers.get('retry-after'), await later.text()], [503, '7', 'later'])
  await assert.rejects(open(`http://localhost:${port}/away`, post), /redirect/)
})

test('public addresses are distinguished from all others', () => {
  for (const address of ['8.8.8.8', '172.15.0.1', '172.32.0.1', '192.169.0.1', '2606:4700::1', '2a00:1450::1']) {
    assert.ok(isPublic(address), address)
  }
  const others = ['172.16.0.1', '172.31.255.255', '192.168.1.1', '100.64.0.1', '224.0.0.1', '255.255.255.255']
  for (const address of [...others, '::', '::1', 'fc00::1', 'fd12::1', 'fe80::1', 'ff02::1', '64:ff9b::a00:1']) {
    assert.ok(!isPublic(address), address)
  }
  for (const address of ['2001:db8::1', '2001::1', '2002:7f00:1::', '::ffff:8.8.8.8']) assert.ok(!isPublic(address))
})
