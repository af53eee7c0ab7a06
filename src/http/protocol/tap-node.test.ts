import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { exchange } from '../../testing/http-client.ts'
import { until } from '../../testing/until.ts'
import type { Answer, Captured } from './exchange.ts'
import type { LeasedRouteContext, Running } from './running.ts'
import type { TapOptions } from './tap-node.ts'
import { tapResponse } from './tap-node.ts'

interface Scene {
  readonly finished: Captured[]
  readonly failed: unknown[]
  readonly lease: AbortController
  /** Opens what holds the outcome back. */
  settle(instead?: Answer): void
  send(): ReturnType<typeof exchange>
}

/** One tapped answer on a real socket; its outcome is recorded when the test says so. */
async function onStage(
  options: Partial<TapOptions> & { readonly below?: (response: ServerResponse) => void },
  handler: (response: ServerResponse, scene: Scene) => unknown,
  body: (scene: Scene) => Promise<void>,
): Promise<void> {
  const settled = Promise.withResolvers<Answer | null>()
  const lease = new AbortController()
  const finished: Captured[] = []
  const failed: unknown[] = []
  const running: Running<unknown> = {
    kind: 'run',
    early: null,
    context: { signal: lease.signal, notDone: () => {} } as LeasedRouteContext,
    inside: (work) => work(),
    finish(captured) {
      finished.push(captured)
      return settled.promise
    },
    async fail(error) {
      failed.push(error)
    },
  }
  const server = createServer((request, response) => {
    request.resume()
    options.below?.(response)
    tapResponse(response, { maxBytes: 1_000, buffered: false, running, ...options })
    handler(response, scene)
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const scene: Scene = {
    finished,
    failed,
    lease,
    settle: (instead) => settled.resolve(instead ?? null),
    send: () => exchange(port, { target: '/', body: 'x' }),
  }
  try {
    await body(scene)
  } finally {
    server.close()
    server.closeAllConnections()
  }
}

const text = ({ body }: Captured) => (body instanceof Uint8Array ? Buffer.from(body).toString() : body)

test('status, reason and headers of writeHead are recorded and sent, names that come twice included', async () => {
  await onStage(
    {},
    (response) => {
      response.setHeader('link', 'old')
      response.writeHead(201, 'Made', ['Link', '<a>', 'Link', '<b>', 'Set-Cookie', 'c=1'])
      response.end('done')
    },
    async (scene) => {
      scene.settle()
      const reply = await scene.send().reply
      assert.deepEqual([reply.status, reply.all('link'), reply.text()], [201, ['<a>', '<b>'], 'done'])
      const [captured] = scene.finished
      assert.ok(captured !== undefined)
      assert.equal(captured.status, 201)
      assert.deepEqual(
        captured.headers.filter(([name]) => name === 'link'),
        [
          ['link', '<a>'],
          ['link', '<b>'],
        ],
      )
    },
  )
})

for (const buffered of [false, true]) {
  test(`an answer that waits for its record is as closed as one that was sent (buffered: ${buffered})`, async () => {
    const seen: unknown[] = []
    await onStage(
      { buffered },
      (response, scene) => {
        response.setHeader('etag', '"1"')
        response.end('done', 'utf8', () => seen.push('ended'))
        seen.push(response.headersSent, response.writableEnded)
        assert.throws(() => response.setHeader('etag', '"2"'), { code: 'ERR_HTTP_HEADERS_SENT' })
        assert.throws(() => response.removeHeader('etag'), { code: 'ERR_HTTP_HEADERS_SENT' })
        assert.throws(() => response.writeHead(500), { code: 'ERR_HTTP_HEADERS_SENT' })
        response.statusCode = 500
        assert.equal(
          response.write('more', (error) => seen.push(error?.message)),
          false,
        )
        response.end('again')
        setTimeout(() => scene.settle(), 20)
      },
      async (scene) => {
        const reply = await scene.send().reply
        assert.deepEqual([reply.status, reply.header('etag'), reply.text()], [200, '"1"', 'done'])
        assert.equal(scene.finished.length, 1)
        assert.deepEqual(new Set(seen), new Set(['ended', true, 'write after end']))
      },
    )
  })
}

test('a single `end` sets the content length, as without protection', async () => {
  await onStage(
    {},
    (response) => response.end('done'),
    async (scene) => {
      scene.settle()
      const reply = await scene.send().reply
      assert.deepEqual([reply.header('content-length'), reply.header('transfer-encoding')], ['4', null])
    },
  )
})

test('a buffered answer leaves nothing behind when it is replaced', async () => {
  await onStage(
    { buffered: true, below: (response) => response.setHeader('x-before', 'kept') },
    (response) => {
      response.writeHead(201, 'Made', { location: '/7', 'content-length': 4 })
      response.flushHeaders()
      response.write('do')
      response.end('ne')
    },
    async (scene) => {
      scene.settle({ status: 503, headers: [['retry-after', '1']], body: Buffer.from('later') })
      const reply = await scene.send().reply
      assert.deepEqual([reply.status, reply.text(), reply.header('location')], [503, 'later', null])
      assert.deepEqual([reply.header('x-before'), reply.header('retry-after')], ['kept', '1'])
    },
  )
})

test('what is recorded is what the handler wrote, not what a layer below makes of it', async () => {
  await onStage(
    {
      below(response) {
        const write = response.write.bind(response) as (chunk: Buffer) => boolean
        const end = response.end.bind(response) as (chunk?: Buffer) => ServerResponse
        const writeHead = response.writeHead.bind(response)
        const shout = (chunk: Uint8Array) => Buffer.from(Buffer.from(chunk).toString().toUpperCase())
        response.writeHead = ((status: number) => {
          response.setHeader('content-encoding', 'upper')
          return writeHead(status)
        }) as typeof response.writeHead
        response.write = ((chunk: Uint8Array) => write(shout(chunk))) as typeof response.write
        response.end = ((chunk?: Uint8Array) => end(chunk === undefined ? chunk : shout(chunk))) as typeof response.end
      },
    },
    (response) => {
      response.write('do')
      response.end('ne')
    },
    async (scene) => {
      scene.settle()
      const reply = await scene.send().reply
      assert.deepEqual([reply.text(), reply.header('content-encoding')], ['DONE', 'upper'])
      const [captured] = scene.finished
      assert.ok(captured !== undefined)
      assert.equal(text(captured), 'done')
      assert.ok(!captured.headers.some(([name]) => name === 'content-encoding'))
    },
  )
})

test('a handler that stops in the middle because its client left has answered with its status', async () => {
  await onStage(
    { idleMs: 50 },
    (response) => response.write('begin'),
    async (scene) => {
      const sent = scene.send()
      await sent.received('begin')
      sent.hangUp()
      await until('the outcome is recorded', () => scene.finished.length === 1)
      assert.deepEqual(scene.finished[0]?.body, { bytes: null, sha256: null })
      assert.equal(scene.finished[0]?.status, 200)
    },
  )
})

test('a handler that continues slowly after its client left is waited for', async (t) => {
  // The time without a word begins again with every word; counting that needs no clock that a busy machine could outrun.
  const idleMs = 123_456
  const begunAnew: string[] = []
  const real = globalThis.setTimeout
  t.mock.method(globalThis, 'setTimeout', ((fire: () => void, ms?: number) => {
    const timer = real(fire, ms)
    if (ms !== idleMs) return timer
    const refresh = timer.refresh.bind(timer)
    timer.refresh = () => {
      begunAnew.push('x')
      return refresh()
    }
    return timer
  }) as typeof setTimeout)
  await onStage(
    { idleMs },
    (response) => {
      const goOn = (left: number) => {
        if (left === 0) return void response.end()
        response.write('x')
        setImmediate(goOn, left - 1)
      }
      response.socket?.on('close', () => setImmediate(goOn, 6))
      response.write('begin')
    },
    async (scene) => {
      const sent = scene.send()
      await sent.received('begin')
      sent.hangUp()
      await until('the outcome is recorded', () => scene.finished.length === 1)
      assert.equal(text(scene.finished[0] as Captured), `begin${begunAnew.join('')}`)
      assert.equal(begunAnew.length, 6)
    },
  )
})

test('a handler that destroys its answer because its client left has answered with its status', async () => {
  await onStage(
    {},
    (response) => {
      response.write('begin')
      response.socket?.on('close', () => setTimeout(() => response.destroy(), 10))
    },
    async (scene) => {
      const sent = scene.send()
      await sent.received('begin')
      sent.hangUp()
      await until('the outcome is recorded', () => scene.finished.length === 1)
      assert.deepEqual(scene.finished[0]?.body, { bytes: null, sha256: null })
      assert.equal(scene.failed.length, 0)
    },
  )
})

test('a handler that pauses longer before it begins to answer is waited for', async () => {
  const begun = Promise.withResolvers<void>()
  await onStage(
    { idleMs: 20 },
    (response) => {
      begun.resolve()
      response.socket?.on('close', () => setTimeout(() => response.end('done'), 120))
    },
    async (scene) => {
      const sent = scene.send()
      await begun.promise
      sent.hangUp()
      await until('the outcome is recorded', () => scene.finished.length === 1)
      assert.equal(text(scene.finished[0] as Captured), 'done')
    },
  )
})

test('past its lease a handler sees that its client left, and nothing is recorded', async () => {
  let closed = false
  await onStage(
    {},
    (response) => {
      response.on('close', () => void (closed = true))
      response.write('begin')
    },
    async (scene) => {
      const sent = scene.send()
      await sent.received('begin')
      sent.hangUp()
      // Long enough for a close event that comes too early.
      await new Promise((resolve) => setTimeout(resolve, 50))
      assert.equal(closed, false)
      scene.lease.abort()
      await until('the handler sees the close', () => closed)
      assert.equal(scene.finished.length, 0)
      assert.equal(scene.failed.length, 1)
    },
  )
})
