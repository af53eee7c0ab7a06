import assert from 'node:assert/strict'
import { Hono } from 'hono'
import type { Store } from 'onceonly'
import { createLedger } from 'onceonly'
import { isOnceError } from 'onceonly/errors'
import { createProtect as protectFetch } from 'onceonly/fetch'
import { createProtect as protectHono } from 'onceonly/hono'
import { memoryStore } from 'onceonly/memory'
import { sqliteStore } from 'onceonly/sqlite'

/** What has to work on every runtime: the two stores that need nothing, and the adapters for web requests. */

const parts = { tenant: 'acme', caller: 'ann' }
const who = () => parts
const headers = { 'content-type': 'application/json', 'idempotency-key': 'k' }
const ask = (path: string) => new Request(`http://localhost${path}`, { method: 'POST', body: '{"cents":100}', headers })

async function routesOn(store: Store): Promise<void> {
  const once = createLedger({ store })
  let count = 0
  const plain = protectFetch({ ledger: once, who })({ name: 'pay.fetch', effect: 'external' }, async () =>
    Response.json({ count: ++count }, { status: 201 }),
  )
  const protect = protectHono({ ledger: once, who })
  const app = new Hono().post(
    '/hono',
    protect({ name: 'pay.hono', effect: 'external' }, async (c) => c.json({ count: ++count }, 201)),
  )
  const routes = { '/fetch': plain, '/hono': async (request: Request) => app.fetch(request) }
  for (const [path, handle] of Object.entries(routes)) {
    const [first, again] = [await handle(ask(path)), await handle(ask(path))]
    assert.equal(first.status, 201)
    assert.deepEqual(await again.json(), await first.json())
    assert.equal(again.headers.get('idempotent-replayed'), 'true')
  }
  assert.equal(count, 2)
  await once.stop()
}

const memory = memoryStore()
await routesOn(memory)
await memory.stop()
console.log('memory')

const file = sqliteStore('smoke.db')
await routesOn(file)
const once = createLedger({ store: file })
await file.sql.query('create table orders (id text not null)')
const place = once.operation<string>({ name: 'order.place', effect: 'transaction' })
const run = (input: string) =>
  place.run({ ...parts, key: 'k' }, input, async ({ tx }) => {
    await tx.query('insert into orders (id) values (?)', [input])
  })
await Promise.all([run('A1'), run('A1')])
assert.equal((await file.sql.query('select id from orders')).length, 1)
await assert.rejects(run('B2'), (error) => isOnceError(error, 'key_reused'))
await once.stop()
await file.stop()
console.log('sqlite')
