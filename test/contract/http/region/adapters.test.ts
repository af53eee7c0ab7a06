import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import type { Ledger } from 'onceonly'
import { createLedger } from 'onceonly'
import { memoryStore } from 'onceonly/memory'
import { createProtect, operationStatus } from 'onceonly/node'
import type { RegionRouterOptions } from 'onceonly/region'
import { createRegionRouter } from 'onceonly/region'
import { ask } from '../../../support/gateway/ask.ts'
import { freePort } from '../../../support/gateway/process.ts'

const secret = 'a secret of two regions, long enough'
const names = ['eu', 'us'] as const

interface Ran {
  readonly at: string
  readonly body: string
}

/** Two servers of one application, with a store each. Callers are known by a session that only its own region has. */
async function openRegions(
  context: TestContext,
  lists: (all: RegionRouterOptions['regions']) => readonly RegionRouterOptions['regions'][],
) {
  const ran: Ran[] = []
  const ledgers: Ledger<unknown>[] = []
  const ports = await Promise.all(names.map(freePort))
  const all = Object.fromEntries(names.map((name, at) => [name, `http://127.0.0.1:${ports[at]}`]))
  const regions = names.map((self, at) => createRegionRouter({ self, secret, regions: lists(all)[at] ?? all }))
  for (const [at, region] of regions.entries()) {
    const ledger = createLedger({ store: memoryStore(), background: false })
    ledgers.push(ledger)
    const who = () => ({ tenant: 'acme', caller: `session-of-${region.self}` })
    const listener = createProtect({ ledger, who, region })({ effect: 'external' }, (request, response) => {
      ran.push({ at: region.self, body: Buffer.from(request.rawBody ?? []).toString() })
      if (request.url === '/large') return void response.writeHead(201).end(Buffer.alloc(33 * 1_024 * 1_024))
      response.setHeader('set-cookie', ['a=1', 'b=2'])
      return void response.writeHead(201).end(`made at ${region.self}`)
    })
    const status = operationStatus({ ledger, who, region })
    const server = createServer((request, response) => {
      void (request.method === 'GET' ? status : listener)(request, response)
    })
    await new Promise<void>((resolve) => void server.listen(ports[at], '127.0.0.1', resolve))
    context.after(async () => {
      region.stop()
      server.close()
      server.closeAllConnections()
      await ledger.stop()
    })
  }
  const records = async () => {
    const pages = await Promise.all(ledgers.map((ledger) => ledger.list({})))
    return pages.flatMap(({ rows }) => rows.map(({ record }) => record))
  }
  return { ran, records, ports: ports as [number, number] }
}

test('an adapter sends a request on to the home of its key, with its own caller, and gives the answer back', async (context) => {
  const { ran, records, ports } = await openRegions(context, () => [])
  for (let at = 0; at < 10; at++) {
    const first = await ask(ports[0], { key: `k-${at}` })
    const retry = await ask(ports[0], { key: `k-${at}` })
    assert.deepEqual([first.status, retry.status, retry.body, retry.replayed], [201, 201, first.body, true])
    assert.deepEqual(first.headers.getSetCookie(), ['a=1', 'b=2'])
  }
  assert.equal(ran.length, 10)
  assert.deepEqual(new Set(ran.map(({ at }) => at)), new Set(names), 'both regions are the home of some')
  assert.deepEqual(new Set(ran.map(({ body }) => body)), new Set(['{"amount":1}']))
  const made = await records()
  assert.deepEqual(new Set(made.map(({ identity }) => identity.caller)), new Set(['session-of-eu']))
  // The home regions also serve the status, and only to the caller.
  for (const { id } of made) {
    const look = { method: 'GET', path: `/operations/${id}`, key: null, body: null }
    const [own, other] = [await ask(ports[0], look), await ask(ports[1], look)]
    assert.deepEqual([own.status, other.status], [200, 404])
    assert.match(own.body, /"status":"succeeded"/)
  }
})

test('a response that is too large for the way back stays recorded, and the effect does not run again', async (context) => {
  const { ran, ports } = await openRegions(context, () => [])
  const regions = Object.fromEntries(names.map((name) => [name, 'http://127.0.0.1']))
  using region = createRegionRouter({ self: 'eu', secret, regions })
  const identity = { tenant: 'acme', caller: 'session-of-eu', operation: 'POST /large' }
  const keys = Array.from({ length: 100 }, (_, at) => `large-${at}`)
  const key = keys.find((each) => region.home({ ...identity, key: each }) === 'us') ?? ''
  for (const attempt of [1, 2]) {
    const answer = await ask(ports[0], { key, path: '/large' })
    assert.deepEqual([answer.status, answer.problem], [409, 'response-not-stored'], `attempt ${attempt}`)
    assert.match(answer.body, /"retryable":false.*"original":{"status":201/)
  }
  assert.deepEqual(
    ran.map(({ at }) => at),
    ['us'],
  )
})

test('regions that do not agree about a home refuse, instead of sending in circles', async (context) => {
  // One has a third region in its list, which leads back to the first: there some keys would go round.
  const { ran, ports } = await openRegions(context, (all) => [{ ...all }, { ...all, ap: all['eu'] ?? '' }])
  const answers = await Promise.all(Array.from({ length: 30 }, (_, at) => ask(ports[0], { key: `circle-${at}` })))
  const refused = answers.filter(({ status }) => status === 503)
  assert.ok(refused.length > 0)
  for (const { problem } of refused) assert.equal(problem, 'home-unreachable')
  assert.equal(ran.length, answers.length - refused.length)
})

test('options of regions are checked by name', () => {
  const bad = { self: 'mars', regions: { eu: 'ftp://x' }, secret: 'short', more: 1 } as never
  assert.throws(
    () => createRegionRouter(bad),
    /`more` is not a setting: known are self, regions, secret, previous; `secret` .*; `regions.eu` .*; `self` is none/,
  )
})
