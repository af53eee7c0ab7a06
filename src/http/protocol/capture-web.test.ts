import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../testing/until.ts'
import { captureResponse } from './capture-web.ts'
import type { Captured } from './exchange.ts'
import type { LeasedRouteContext, Running } from './running.ts'

function stage() {
  const finished = Promise.withResolvers<Captured>()
  const failed = Promise.withResolvers<unknown>()
  const lease = new AbortController()
  const running: Running<unknown> = {
    kind: 'run',
    early: null,
    context: { signal: lease.signal, notDone: () => {} } as LeasedRouteContext,
    inside: (work) => work(),
    async finish(captured) {
      finished.resolve(captured)
      return null
    },
    async fail(error) {
      failed.resolve(error)
    },
  }
  return { running, finished: finished.promise, failed: failed.promise, lease }
}

function onStage(source: AsyncIterable<string>, options: { maxBytes?: number; gone?: boolean } = {}) {
  const { running, finished, failed } = stage()
  const bytes = ReadableStream.from(source).pipeThrough(new TextEncoderStream())
  const leaving = new AbortController()
  const { maxBytes = 1_000, gone = false } = options
  if (gone) leaving.abort()
  const capture = { method: 'POST', signal: leaving.signal, maxBytes, buffered: false, running }
  const response = captureResponse(new Response(bytes as ReadableStream, { status: 201 }), capture)
  return { response, finished, failed, leaving }
}

async function* words(...texts: readonly string[]): AsyncGenerator<string, undefined> {
  for (const text of texts) {
    await new Promise((resolve) => setTimeout(resolve, 2))
    yield text
  }
}

const text = ({ body }: Captured) => (body instanceof Uint8Array ? Buffer.from(body).toString() : body)

test('an unread response is recorded all the same', async () => {
  const { response, finished } = onStage(words('a', 'b', 'c'))
  await response
  assert.equal(text(await finished), 'abc')
})

test('an answer that is given up in the middle is read to its end', async () => {
  const { response, finished } = onStage(words('a', 'b', 'c'))
  const reader = (await response).body?.getReader()
  await reader?.read()
  await reader?.cancel()
  assert.equal(text(await finished), 'abc')
})

for (const when of ['in the middle', 'before it begins'] as const) {
  test(`past the cap an answer that is given up ${when} is not read any further, and its source is closed`, async () => {
    let closed = false
    let given = 0
    async function* endless(): AsyncGenerator<string, undefined> {
      try {
        for (;;) {
          given++
          yield 'x'.repeat(100)
          await new Promise((resolve) => setTimeout(resolve, 1))
        }
      } finally {
        closed = true
      }
    }
    const early = when === 'before it begins'
    const { response, finished } = onStage(endless(), { maxBytes: 500, gone: early })
    const reader = (await response).body?.getReader()
    if (!early) {
      await reader?.read()
      await reader?.cancel()
    }
    assert.deepEqual((await finished).body, { bytes: null, sha256: null })
    await until('the source is closed', () => closed)
    assert.ok(given < 50, `${given} chunks`)
  })
}

test('a source that was closed because its client left did answer; one that failed did not', async () => {
  async function* closing(name: string, when: Promise<unknown>): AsyncGenerator<string, undefined> {
    yield 'a'
    await when
    throw Object.assign(new Error('over'), { name })
  }
  const leaving = Promise.withResolvers<void>()
  const left = onStage(closing('AbortError', leaving.promise))
  await left.response
  left.leaving.abort()
  leaving.resolve()
  assert.deepEqual((await left.finished).body, { bytes: null, sha256: null })

  const breaking = Promise.withResolvers<void>()
  const broken = onStage(closing('TypeError', breaking.promise))
  await broken.response
  broken.leaving.abort()
  breaking.resolve()
  assert.equal(((await broken.failed) as Error).name, 'TypeError')

  const listening = onStage(closing('AbortError', Promise.resolve()))
  await assert.rejects((await listening.response).text(), { name: 'AbortError' })
  assert.equal(((await listening.failed) as Error).name, 'AbortError')
})

for (const end of ['nothing more came of it', 'its lease ended'] as const) {
  test(`an answer that its client gave up is over when ${end}, although its source never ends`, async () => {
    const given = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<unknown>()
    const source = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode('a')),
      pull: () => given.resolve(),
      cancel: closed.resolve,
    })
    const idles = end === 'nothing more came of it'
    const { running, finished, lease } = stage()
    const leaving = new AbortController()
    const capture = { method: 'POST', signal: leaving.signal, maxBytes: 1_000, buffered: false, running }
    const response = await captureResponse(new Response(source), { ...capture, ...(idles ? { idleMs: 20 } : {}) })
    assert.equal(new TextDecoder().decode((await response.body?.getReader().read())?.value), 'a')
    await given.promise
    leaving.abort()
    if (!idles) lease.abort()
    assert.deepEqual((await finished).body, { bytes: null, sha256: null })
    await closed.promise
  })
}
