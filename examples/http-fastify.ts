import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Fastify from 'fastify'
import { createLedger } from 'onceonly'
import { createProtect, onceonly } from 'onceonly/fastify'
import { sqliteStore } from 'onceonly/sqlite'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-example-'))
const store = sqliteStore(join(folder, 'orders.db'))
const once = createLedger({ store })
await store.sql.query('create table orders (id integer primary key, item text not null)')

const app = Fastify()
await app.register(onceonly)
const protect = createProtect({ ledger: once, who: () => ({ tenant: 'acme', caller: 'shared' }) })
app.post<{ Body: { item: string } }>(
  '/orders',
  protect({ name: 'order.place', effect: 'transaction' }, async (request, reply, { tx }) => {
    // The order, its key and its answer commit together: a crash in between leaves all of them, or none.
    const text = 'insert into orders (item) values (?) returning id'
    const rows = await tx.query<{ id: number }>(text, [request.body.item])
    return reply.code(201).send(rows[0])
  }),
)
const url = await app.listen({ port: 0, host: '127.0.0.1' })

const ask = () =>
  fetch(`${url}/orders`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': 'click-1' },
    body: '{"item":"a book"}',
  })
const first = await ask()
const retry = await ask()
assert.deepEqual([retry.status, await retry.text()], [201, await first.text()])
assert.equal(retry.headers.get('idempotent-replayed'), 'true')
assert.equal((await store.sql.query('select id from orders')).length, 1)

console.log('two requests under one key, one order')
await app.close()
await once.stop()
rmSync(folder, { recursive: true })
