import assert from 'node:assert/strict'
import { EventEmitter, once as happened } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLedger } from 'onceonly'
import { createInbox } from 'onceonly/inbox'
import { createLocalBus } from 'onceonly/local'
import { createOutbox, createRelay } from 'onceonly/outbox'
import { sqliteStore } from 'onceonly/sqlite'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-example-'))
const store = sqliteStore(join(folder, 'orders.db'))
const once = createLedger({ store })
const outbox = createOutbox({ ledger: once })
await outbox.prepare()
await store.sql.query('create table orders (id text not null)')
await store.sql.query('create table parcels (id text not null)')

// The order and the message about it commit together, or not at all.
const placeOrder = once.operation<{ id: string }>({ name: 'order.place', effect: 'transaction' })
const place = (id: string) =>
  placeOrder.run({ tenant: 'acme', caller: 'shop', key: id }, { id }, async ({ tx, outbox: sends }) => {
    await tx.query('insert into orders (id) values (?)', [id])
    await sends.add({ topic: 'order.placed', key: id, body: { id } })
    if (id === 'C3') throw new Error('sold out')
  })

// A consumer reacts. The bus needs no server; `onceonly/rabbitmq` and `onceonly/nats` take its place without a change.
const bus = createLocalBus({ store })
const events = new EventEmitter()
const both = happened(events, 'both')
let handled = 0
const inbox = createInbox({
  ledger: once,
  consumer: 'shipping',
  on: ({ kind }) => {
    if (kind === 'handled' && ++handled === 2) events.emit('both')
  },
})
await inbox.consume<{ id: string }>(bus, { topics: ['order.placed'] }, async ({ id }, { tx }) => {
  await tx.query('insert into parcels (id) values (?)', [id])
})
createRelay({ ledger: once, publisher: bus })

await place('A1')
// The client did not hear the answer, and asks again: still one order, and one message.
await place('A1')
await assert.rejects(place('C3'), /sold out/)
await place('B2')

await both
const idsIn = async (table: string) =>
  (await store.sql.query<{ id: string }>(`select id from ${table} order by id`)).map(({ id }) => id)
assert.deepEqual(await idsIn('orders'), ['A1', 'B2'])
assert.deepEqual(await idsIn('parcels'), ['A1', 'B2'])
assert.equal((await outbox.status()).pending, 0)
console.log('four commands, two orders, two parcels')

await bus.stop()
// Ends the relay and the inbox as well.
await once.stop()
rmSync(folder, { recursive: true })
