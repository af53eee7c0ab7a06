import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createLedger, isOnceError } from 'onceonly'
import type { ClientEvent, ClientOptions } from 'onceonly/client'
import { createClient, newKey } from 'onceonly/client'
import { openFileKeys } from 'onceonly/client-file'
import { memoryStore } from 'onceonly/memory'
import { createProtect } from 'onceonly/node'
import { until } from '../../../../src/testing/until.ts'

const sender = fileURLToPath(import.meta.resolve('./sender.ts'))
const root = join(import.meta.dirname, '../../../..')

/** What the wire does to one answer. */
type Fault = (request: IncomingMessage, response: ServerResponse) => void

const cut: Fault = (_request, response) => void response.socket?.destroy()
/** The head and a part of the body arrive, and then nothing more. */
const cutInside: Fault = (_request, { socket }) => {
  const part = 'HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"order":'
  socket?.write(part, () => void socket.destroy())
}
const answers =
  (status: number, headers: Record<string, string> = {}, body = ''): Fault =>
  (_request, response) =>
    void response.writeHead(status, headers).end(body)
const problem = (status: number, retryable: boolean): Fault =>
  answers(status, { 'content-type': 'application/problem+json' }, JSON.stringify({ retryable, retryAfterMs: 1 }))

describe('the client', () => {
  const store = memoryStore()
  const ledger = createLedger({ store })
  const folder = mkdtempSync(join(tmpdir(), 'onceonly-client-'))
  const faults: (Fault | 'pass')[] = []
  const keysSeen: (string | undefined)[] = []
  let effects = 0
  let held: Promise<void> | null = null
  let url = ''

  const protect = createProtect({ ledger, who: () => ({ tenant: 'acme', caller: 'ann' }) })
  const handle = protect({ name: 'orders', effect: 'external', key: 'optional' }, async (_request, response) => {
    effects += 1
    const order = effects
    await held
    response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ order }))
  })
  const server = createServer((request, response) => {
    keysSeen.push(request.headers['idempotency-key'] as string | undefined)
    const fault = faults.shift() ?? 'pass'
    if (fault === 'pass') return void handle(request, response)
    if (fault !== cut && fault !== cutInside) return void request.resume().on('end', () => fault(request, response))
    // The effect happens, and its answer is lost.
    response.writeHead = () => response
    response.write = () => true
    response.end = () => {
      fault(request, response)
      return response
    }
    return void handle(request, response)
  })

  before(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  after(async () => {
    server.closeAllConnections()
    server.close()
    await ledger.stop()
    await store.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"item":"tea"}' }

  function clientWith(list: readonly (Fault | 'pass')[], options: ClientOptions = {}) {
    faults.splice(0, faults.length, ...list)
    keysSeen.length = 0
    const events: ClientEvent[] = []
    return { client: createClient({ ...options, on: (event) => events.push(event) }), events }
  }

  test('an answer that is lost, before or inside of it, is asked for again under the same key', async () => {
    const counted = effects
    const { client, events } = clientWith([cut, cutInside])
    const { response, replayed, attempts, key } = await client.send(`${url}/orders`, post)
    assert.deepEqual([response.status, await response.json()], [201, { order: counted + 1 }])
    assert.deepEqual([replayed, attempts, effects], [true, 3, counted + 1])
    assert.deepEqual(keysSeen, [key, key, key])
    assert.match(key ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.deepEqual(
      events.map(({ attempt, status }) => [attempt, status]),
      [
        [1, null],
        [2, null],
      ],
    )
  })

  test('what passes is tried again: 429, 502, 503, 504, and a request in progress', async () => {
    const stripe = answers(409, { 'content-type': 'application/json' }, '{"error":{"code":"idempotency_key_in_use"}}')
    for (const fault of [answers(502), problem(503, true), answers(504), problem(409, true), stripe]) {
      const { client } = clientWith([fault])
      const { response, replayed, attempts } = await client.send(`${url}/orders`, post)
      assert.deepEqual([response.status, replayed, attempts], [201, false, 2])
    }
    const { client, events } = clientWith([answers(429, { 'retry-after': '1' })])
    assert.equal((await client.send(`${url}/orders`, post)).attempts, 2)
    assert.ok((events[0]?.waitMs ?? 0) >= 1_000, 'not sooner than the server asked for')
  })

  test('a failure that a retry cannot change is returned at once', async () => {
    const inUse = answers(409, { 'content-type': 'application/json' }, '{"error":{"code":"idempotency_error"}}')
    for (const fault of [
      problem(409, false),
      problem(502, false),
      problem(504, false),
      answers(409),
      inUse,
      answers(500),
      answers(400),
    ]) {
      const { client } = clientWith([fault])
      assert.equal((await client.send(`${url}/orders`, post)).attempts, 1)
    }
    const { client } = clientWith([])
    const { key } = await client.send(`${url}/orders`, post)
    const reused = await client.send(`${url}/orders`, { ...post, body: '{"item":"coffee"}', key: key ?? '' })
    assert.deepEqual([reused.response.status, reused.attempts], [409, 1])
  })

  test('a duplicate in flight is waited for, and not run in parallel', async () => {
    const counted = effects
    const gate = Promise.withResolvers<void>()
    held = gate.promise
    const { client } = clientWith([])
    const key = newKey()
    const twins = [client.send(`${url}/orders`, { ...post, key }), client.send(`${url}/orders`, { ...post, key })]
    await until('both twins are there', () => keysSeen.length >= 2)
    gate.resolve()
    held = null
    const [one, two] = await Promise.all(twins)
    assert.deepEqual(new Set([one?.replayed, two?.replayed]), new Set([false, true]))
    assert.equal(effects, counted + 1)
  })

  test('what cannot be sent twice is not; reading needs no key', async () => {
    const stream = new Blob(['{"item":"tea"}']).stream()
    const { client } = clientWith([answers(503)])
    const sent = await client.send(`${url}/orders`, { ...post, body: stream, duplex: 'half' } as never)
    assert.deepEqual([sent.response.status, sent.attempts], [503, 1])
    const reading = clientWith([cut, answers(200, {}, 'read')])
    const read = await reading.client.send(`${url}/orders`)
    assert.deepEqual([await read.response.text(), read.key, keysSeen.at(-1)], ['read', null, undefined])
  })

  test('it ends after its attempts, after its time, or when it is stopped', async () => {
    const few = clientWith(Array(9).fill(cut), { attempts: 2 })
    await assert.rejects(few.client.send(`${url}/orders`, post), (error) => {
      return isOnceError(error, 'no_answer') && error.applied === 'maybe' && error.details['attempts'] === 2
    })
    const short = clientWith([answers(503, { 'retry-after': '3600' })])
    assert.equal((await short.client.send(`${url}/orders`, post)).response.status, 503, 'it does not wait for an hour')
    const stopped = clientWith([answers(503, { 'retry-after': '60' })])
    const waiting = stopped.client.send(`${url}/orders`, post)
    await until('the client waits for its next attempt', () => stopped.events.length > 0)
    stopped.client.stop()
    await assert.rejects(waiting, (error) => isOnceError(error, 'stopped'))
    const given = clientWith([answers(503, { 'retry-after': '60' })])
    const reason = new Error('enough')
    const aborter = new AbortController()
    const abandoned = given.client.send(`${url}/orders`, { ...post, signal: aborter.signal })
    await until('the client waits for its next attempt', () => given.events.length > 0)
    aborter.abort(reason)
    await assert.rejects(abandoned, reason)
  })

  test('the error is reported after the last attempt, or at once where no request was made', async () => {
    const unused = createServer()
    await once(unused.listen(0, '127.0.0.1'), 'listening')
    const { port } = unused.address() as AddressInfo
    unused.close()
    const away = clientWith([], { attempts: 2 })
    await assert.rejects(away.client.send(`http://127.0.0.1:${port}`, post), (error) => {
      const { cause } = (error as Error).cause as { cause?: { code?: string } }
      return isOnceError(error, 'no_answer') && cause?.code === 'ECONNREFUSED'
    })
    assert.ok(away.events[0]?.error instanceof Error)
    const none = clientWith([])
    for (const options of [post, { ...post, method: 'NO SUCH' }]) {
      await assert.rejects(none.client.send(options === post ? 'not a url' : url, options), TypeError)
    }
    assert.equal(none.events.length, 0)
    const intent = none.client.send(`${url}/orders`, { ...post, intent: 'order-18' })
    await assert.rejects(intent, (error) => isOnceError(error, 'bad_option'))
    assert.equal(keysSeen.length, 0, 'nothing was sent')
  })

  test('a process that is killed before its answer leaves the key, and the next one gets the answer', async () => {
    const counted = effects
    faults.length = 0
    const gate = Promise.withResolvers<void>()
    held = gate.promise
    const start = () =>
      spawn(process.execPath, ['--conditions=onceonly-source', sender, url, folder], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
    const first = start()
    await until('the effect of the first process began', () => effects > counted)
    first.kill('SIGKILL')
    await once(first, 'exit')
    gate.resolve()
    held = null
    const second = start()
    const said = JSON.parse(String(await second.stdout.setEncoding('utf8').toArray())) as Record<string, unknown>
    assert.deepEqual([said['status'], said['body'], said['replayed']], [201, { order: counted + 1 }, true])
    assert.equal(effects, counted + 1)

    const keys = await openFileKeys({ folder })
    assert.equal(await keys.keep('order-17', 'another'), said['key'], 'the first key stays')
    await keys.drop('order-17')
    assert.equal(await keys.keep('order-17', 'another'), 'another')
    await openFileKeys({ folder, keepMs: -1_000 })
    assert.equal(await keys.keep('order-17', 'third'), 'third', 'old keys are removed')
  })

  test('twenty processes or tasks with one intent have one key', async () => {
    const places = await Promise.all(Array.from({ length: 4 }, () => openFileKeys({ folder })))
    const all = places.flatMap((place) => Array.from({ length: 5 }, () => place.keep('shared', newKey())))
    assert.equal(new Set(await Promise.all(all)).size, 1)
  })

  test('keys sort by their time, and a browser can load the client', () => {
    assert.ok(newKey(1_700_000_000_000) < newKey(1_700_000_000_001))
    assert.equal(Number.parseInt(newKey(1_700_000_000_123).replaceAll('-', '').slice(0, 12), 16), 1_700_000_000_123)
    const seen = new Set<string>()
    const waiting = [join(root, 'src/http/client/index.ts')]
    for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
      if (seen.has(file)) continue
      seen.add(file)
      assert.ok(existsSync(file), file)
      // Imports and exports begin a line, or end a list of names; those of examples stand in comments.
      for (const [, from = ''] of readFileSync(file, 'utf8').matchAll(/^(?! \*).* from '([^']+)'/gm)) {
        assert.ok(from.startsWith('.'), `${file} imports ${from}`)
        waiting.push(join(dirname(file), from))
      }
    }
    assert.ok(seen.size > 3)
  })
})
