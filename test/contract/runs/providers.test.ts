import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { isOnceError } from 'onceonly'
import type { HttpPlan } from 'onceonly/run'
import { defineRun, httpChannel, providers, stepKey } from 'onceonly/run'
import { isVerdict } from '../../../src/ledger/core/verdict.ts'
import { until } from '../../../src/testing/until.ts'
import { onEveryRunStore } from '../../support/runs/world.ts'

interface Seen {
  readonly key: string | undefined
  readonly body: unknown
}

/** A provider over real HTTP: what it answers is decided by the test, request by request. */
async function provider(answer: (seen: Seen, number: number) => { status: number; retryAfter?: string } | 'cut') {
  const seen: Seen[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    request.on('end', () => {
      const isForm = request.headers['content-type'] === 'application/x-www-form-urlencoded'
      const body: unknown = isForm ? Object.fromEntries(new URLSearchParams(text)) : JSON.parse(text)
      const one = { key: request.headers['idempotency-key'] as string | undefined, body }
      seen.push(one)
      const given = answer(one, seen.length)
      if (given === 'cut') return request.socket.destroy()
      response.writeHead(given.status, given.retryAfter === undefined ? {} : { 'retry-after': given.retryAfter })
      return response.end(JSON.stringify({ number: seen.length }))
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return { seen, url: `http://127.0.0.1:${port}/`, [Symbol.asyncDispose]: async () => void server.close() }
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE

function sending(profile: (typeof providers)[keyof typeof providers], url: string, retry = {}) {
  const channel = httpChannel({ name: 'mail', provider: profile, headers: async () => ({ authorization: 'secret' }) })
  return defineRun('send', (run) =>
    run.step('send', { channel, retry }, (): HttpPlan => ({ url, body: { to: 'ann@example.com' } })),
  )
}

onEveryRunStore(
  'a provider that takes keys gets the same one and the same bytes after a lost answer',
  async (world) => {
    await using http = await provider((_seen, number) => (number === 1 ? 'cut' : { status: 200 }))
    const run = sending(providers.resend, http.url, { baseMs: 1, backoff: 'fixed' })
    const engine = await world.engine({ runs: [run] })
    const sent = await (await engine.start(run, { runId: 'r', input: null })).result()
    assert.deepEqual(sent, { status: 200, body: { number: 2 } })
    const expected = { key: stepKey('r', 'send', 0), body: { to: 'ann@example.com' } }
    assert.deepEqual(http.seen, [expected, expected])
    const [row] = await (world.store().sql?.query('select * from onceonly_run_steps') ?? [])
    assert.ok(!JSON.stringify(row).includes('secret'))
  },
)

onEveryRunStore('a provider without keys is not asked twice: the step is unknown', async (world) => {
  await using http = await provider(() => 'cut')
  const run = sending(providers.twilio, http.url)
  const engine = await world.engine({ runs: [run] })
  const handle = await engine.start(run, { runId: 't', input: null })
  await until('an outcome of the run is unknown', handle.view, ({ state }) => state === 'unknown')
  assert.equal(http.seen.length, 1)
})

onEveryRunStore('503 is "not now" only with a Retry-After: without one the outcome is unknown', async (world) => {
  const answers: { status: number; retryAfter?: string }[] = [{ status: 503, retryAfter: '0' }, { status: 503 }]
  await using http = await provider((_seen, number) => answers[number - 1] ?? { status: 200 })
  const blind = sending(providers.twilio, http.url, { baseMs: 1, backoff: 'fixed' })
  const engine = await world.engine({ runs: [blind] })
  const handle = await engine.start(blind, { runId: 'b', input: null })
  const view = await until('an outcome of the run is unknown', handle.view, ({ state }) => state === 'unknown')
  assert.deepEqual([view.steps[0]?.attempts, http.seen.length], [2, 2])
  assert.deepEqual(
    view.steps[0]?.failures.map(({ definite, code }) => [definite, code]),
    [
      [true, 'HTTP_503'],
      [false, 'HTTP_503'],
    ],
  )
})

test('of a provider that answers without an end only the beginning is read', async () => {
  let pulled = 0
  const body = new ReadableStream({
    pull: (controller) => {
      pulled += 1
      controller.enqueue(new TextEncoder().encode('x'.repeat(16 * 1_024)))
    },
  })
  const channel = httpChannel({ name: 'mail', provider: providers.http, fetch: async () => new Response(body) })
  const context = { effectKey: 'k', fence: 1, attemptNumber: 1, signal: AbortSignal.timeout(10_000), derive: () => 'd' }
  const sent = await channel.send({ url: 'http://mail.invalid/' }, context)
  assert.equal(String(sent.body).length, 64 * 1_024)
  assert.ok(pulled < 10, `${pulled} pieces`)
})

onEveryRunStore('a tag goes where the provider takes it; what it refuses is final', async (world) => {
  await using http = await provider(() => ({ status: 422 }))
  const run = sending(providers.sendgrid, http.url)
  const engine = await world.engine({ runs: [run] })
  const handle = await engine.start(run, { runId: 's', input: null })
  await assert.rejects(handle.result(), (error) => isOnceError(error, 'run_failed'))
  const key = stepKey('s', 'send', 0)
  assert.deepEqual(http.seen, [{ key: undefined, body: { to: 'ann@example.com', custom_args: { onceonly_key: key } } }])
})

test('Amazon SES takes its tag among the others; a body that has no place for it is refused before it is sent', async () => {
  const bodies: unknown[] = []
  const channel = httpChannel({
    name: 'ses',
    provider: providers.ses,
    fetch: async (_url, init) => {
      bodies.push(JSON.parse(String(init?.body)))
      return new Response('{}')
    },
  })
  const context = {
    effectKey: 'k-1',
    fence: 1,
    attemptNumber: 1,
    signal: AbortSignal.timeout(10_000),
    derive: () => 'd',
  }
  const send = (body: unknown, effectKey = 'k-1') =>
    channel.send({ url: 'http://ses.invalid/', body }, { ...context, effectKey })
  const own = { Name: 'campaign', Value: 'spring' }
  const tag = { Name: 'onceonly_key', Value: 'k-1' }
  await send({ a: 1 })
  await send({ EmailTags: [own] })
  assert.deepEqual(bodies, [{ a: 1, EmailTags: [tag] }, { EmailTags: [own, tag] }])
  const refusals = [send({ EmailTags: { campaign: 'spring' } }), send('text'), send([]), send({}, 'a key')]
  for (const refusal of refusals) {
    await assert.rejects(refusal, (error) => isVerdict(error) && error.verdict === 'final')
  }
  assert.equal(bodies.length, 2)
})

onEveryRunStore(
  'a provider that keeps failures gets a new key for a definite one, the same for a lost one',
  async (world) => {
    await using http = await provider((_seen, number) =>
      number === 1 ? { status: 429, retryAfter: '0' } : number === 2 ? 'cut' : { status: 200 },
    )
    const run = sending(providers.stripe, http.url, { baseMs: 1, backoff: 'fixed' })
    const engine = await world.engine({ runs: [run] })
    await (await engine.start(run, { runId: 'k', input: null })).result()
    const [first, second, third] = http.seen.map(({ key }) => key)
    assert.equal(first, stepKey('k', 'send', 0))
    assert.notEqual(second, first)
    assert.equal(third, second)
  },
)

onEveryRunStore('a retry beyond the window is parked, and continues after it was resolved', async (world) => {
  await using http = await provider((_seen, number) => (number === 1 ? 'cut' : { status: 200 }))
  const run = sending(providers.nylas, http.url, { baseMs: 2 * HOUR, backoff: 'fixed' })
  const engine = await world.engine({ runs: [run] })
  const handle = await engine.start(run, { runId: 'n', input: null })
  const view = await until('an outcome of the run is unknown', handle.view, ({ state }) => state === 'unknown')
  await world.advance(3 * HOUR)
  assert.equal(http.seen.length, 1)
  await engine.resolve('n', view.steps[0]?.key ?? '', { kind: 'not_done' })
  assert.deepEqual(await handle.result(), { status: 200, body: { number: 2 } })
})

test('every profile says what it takes, and our keys fit', () => {
  for (const profile of Object.values(providers)) {
    if (profile.offer.kind === 'native') {
      assert.ok(profile.keyChars >= stepKey('r', 's', 0).length, profile.name)
      assert.ok(profile.offer.windowMs >= HOUR, profile.name)
    }
    assert.match(stepKey('r', 's', 0), profile.keyCharset)
    assert.equal(profile.carries === null, profile.offer.kind === 'none', profile.name)
  }
})
