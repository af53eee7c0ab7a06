import assert from 'node:assert/strict'
import { request as ask } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import Fastify from 'fastify'
import type { Declaration } from '../openapi/declaration.ts'
import { type Admission, admitCommands, createAdmission } from './admission.ts'

const identity = { tenant: 'acme', caller: 'web', operation: 'order.create', key: 'one' }

function crowded(): { readonly admission: Admission; claim(tookMs: number): Promise<void> } {
  let nowMs = 0
  const admission = createAdmission(() => nowMs)
  for (let n = 0; admission.enter(`workspace-${n}`); n++);
  const claim = (tookMs: number) =>
    admission.around('claim', { id: '', identity }, async () => {
      nowMs += tookMs
    })
  return { admission, claim }
}

test('a store that falls behind is given less, down to what keeps it busy', async () => {
  const { admission, claim } = crowded()
  assert.equal(admission.load.most, 1_000)
  await claim(1_000)
  assert.equal(admission.load.most, 700)
  assert.equal(admission.enter('another'), false)
  for (let n = 0; n < 20; n++) await claim(2_000)
  assert.equal(admission.load.most, 64)
})

test('claims that were late together are one reason', async () => {
  const { admission, claim } = crowded()
  const done = Promise.withResolvers<void>()
  const others = [1, 2, 3].map(() => admission.around('claim', { id: '', identity }, () => done.promise))
  await claim(1_000)
  done.resolve()
  await Promise.all(others)
  assert.equal(admission.load.most, 700)
})

test('a store that keeps up again is given more, one for each claim', async () => {
  const { admission, claim } = crowded()
  await claim(1_000)
  for (let n = 0; n < 400; n++) await claim(5)
  assert.equal(admission.load.most, 1_000)
})

test('the time of an effect says nothing about the store', async () => {
  const { admission } = crowded()
  let nowMs = 0
  await admission.around('effect', { id: '', identity }, async () => {
    nowMs += 60_000
  })
  assert.equal(admission.load.most, 1_000)
})

/** One command and one operator's action; both answer when the test lets them. */
async function serve(t: TestContext, most: number) {
  const server = Fastify()
  const handled: string[] = []
  const gates: (() => void)[] = []
  /** By how many were handled then. */
  const began = Array.from({ length: 4 }, () => Promise.withResolvers<void>())
  const left = Promise.withResolvers<void>()
  let underWay = 0
  admitCommands(server, {
    mayEnter: () => underWay < most,
    enter: () => underWay < most && ++underWay > 0,
    leave: () => {
      underWay -= 1
      left.resolve()
    },
    receive: () => ({ arrived() {}, release() {} }),
  })
  for (const [url, access] of [
    ['/commands', 'api key'],
    ['/actions', 'operator'],
  ] as const) {
    const declaration = { access, repeat: { kind: 'natural' } } as unknown as Declaration
    server.post(url, { config: { declaration } }, async () => {
      handled.push(url)
      began[handled.length]?.resolve()
      await new Promise<void>((resolve) => gates.push(resolve))
      return { done: true }
    })
  }
  await server.listen({ host: '127.0.0.1', port: 0 })
  t.after(() => server.close())
  const { port } = server.server.address() as AddressInfo
  const post = (url: string) => fetch(`http://127.0.0.1:${port}${url}`, { method: 'POST' })
  return { port, post, handled, gates, began: (count: number) => began[count]?.promise, left: left.promise }
}

test('past the bound a command is refused before it begins; operators come in', async (t) => {
  const { post, handled, gates, began } = await serve(t, 1)
  const first = post('/commands')
  await began(1)
  const refused = await post('/commands')
  assert.equal(refused.status, 503)
  assert.match(refused.headers.get('retry-after') ?? '', /^[1-5]$/)
  const { type, retryable } = (await refused.json()) as { type: string; retryable: boolean }
  assert.deepEqual({ type, retryable }, { type: '/problems/overloaded', retryable: true })
  const action = post('/actions')
  await began(2)
  assert.deepEqual(handled, ['/commands', '/actions'])
  for (const open of gates) open()
  assert.deepEqual([(await first).status, (await action).status], [200, 200])
  const next = post('/commands')
  await began(3)
  gates[2]?.()
  assert.equal((await next).status, 200)
})

test('a client that hangs up keeps the place until the work has ended', async (t) => {
  const { port, post, gates, began, left } = await serve(t, 1)
  const leaving = ask({ host: '127.0.0.1', port, path: '/commands', method: 'POST' }).on('error', () => {})
  leaving.end()
  await began(1)
  leaving.destroy()
  assert.equal((await post('/commands')).status, 503)
  gates[0]?.()
  await left
})
