import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createLedger } from 'onceonly'
import { memoryStore } from 'onceonly/memory'
import { createProtect } from 'onceonly/node'
import { createRegionRouter } from 'onceonly/region'

const secret = 'a secret of two regions, long enough'

/** A request as an eavesdropper between two regions sees it. */
interface Caught {
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

test('an eavesdropper between two regions can send neither a copied request nor another one in its name', async (context) => {
  const caught: Caught[] = []
  // Stands where the home should be, and keeps what comes.
  const listener = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => void chunks.push(chunk))
    request.on('end', () => {
      if (request.method === 'POST') caught.push({ headers: request.headers, body: Buffer.concat(chunks).toString() })
      response.writeHead(503).end()
    })
  })
  await once(listener.listen(0, '127.0.0.1'), 'listening')
  const between = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`

  let ran = 0
  const store = memoryStore()
  const ledger = createLedger({ store, background: false })
  const us = createRegionRouter({ self: 'us', secret, regions: { eu: between, us: between } })
  const who = () => ({ tenant: 'acme', caller: 'stranger' })
  const home = createServer((request, response) => {
    void createProtect({ ledger, who, region: us })({ effect: 'external' }, (_request, answer) => {
      ran++
      answer.writeHead(201).end('made')
    })(request, response)
  })
  await once(home.listen(0, '127.0.0.1'), 'listening')
  const homeUrl = `http://127.0.0.1:${(home.address() as AddressInfo).port}`
  using eu = createRegionRouter({ self: 'eu', secret, regions: { eu: between, us: between } })
  const euLedger = createLedger({ store: memoryStore(), background: false })
  const front = createServer((request, response) => {
    const caller = { tenant: 'acme', caller: 'ann' }
    void createProtect({ ledger: euLedger, who: () => caller, region: eu })(
      { effect: 'external' },
      (_request, answer) => {
        answer.writeHead(201).end('made at eu')
      },
    )(request, response)
  })
  await once(front.listen(0, '127.0.0.1'), 'listening')
  const frontUrl = `http://127.0.0.1:${(front.address() as AddressInfo).port}`
  context.after(async () => {
    us.stop()
    for (const server of [listener, home, front]) {
      server.close()
      server.closeAllConnections()
    }
    await Promise.all([ledger.stop(), euLedger.stop()])
    await store.stop()
  })

  const identity = { tenant: 'acme', caller: 'ann', operation: 'POST /pay' }
  const keys = Array.from({ length: 100 }, (_, at) => `pay-${at}`)
  const key = keys.find((each) => eu.home({ ...identity, key: each }) === 'us') ?? ''
  const headers = { 'content-type': 'application/json', 'idempotency-key': key, authorization: 'Bearer ann' }
  await (await fetch(`${frontUrl}/pay`, { method: 'POST', headers, body: '{"amount":1}' })).text()
  const [one] = caught
  assert.ok(one !== undefined, 'the request was sent on')

  const passed = (changed: Readonly<Record<string, string>>, body = one.body) => {
    const kept = Object.entries(one.headers).filter(
      ([name]) => !/^(host|connection|content-length|transfer-)/.test(name),
    )
    return fetch(`${homeUrl}/pay`, {
      method: 'POST',
      headers: { ...(Object.fromEntries(kept) as Record<string, string>), ...changed },
      body,
    })
  }
  assert.equal((await passed({}, '{"amount":1000000}')).status, 403, 'another body')
  assert.equal((await passed({ authorization: 'Bearer eve' })).status, 403, 'another credential')
  assert.equal((await passed({ 'onceonly-client': 'http 10.0.0.1' })).status, 403, 'another client')
  assert.equal((await passed({ 'idempotency-key': 'another' })).status, 403, 'another key')
  assert.equal(ran, 0)
  assert.equal((await passed({})).status, 201, 'as it was sent')
  assert.equal((await passed({})).status, 403, 'and once')
  assert.equal(ran, 1)
})
