import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLedger } from 'onceonly'
import type { IncomingMessage } from 'onceonly/inbox'
import { createInbox } from 'onceonly/inbox'
import { sqliteStore } from 'onceonly/sqlite'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-example-'))
const store = sqliteStore(join(folder, 'invoices.db'))
const once = createLedger({ store })
const inbox = createInbox({ ledger: once, consumer: 'billing', maxFailures: 2 })
await store.sql.query('create table invoices (order_id text not null)')

// What a broker hands over; `inbox.consume(broker, { topics }, effect)` subscribes and acknowledges by itself.
const delivery = (id: string, body: unknown, deliveries = 1): IncomingMessage => ({
  id,
  topic: 'order.placed',
  key: null,
  sequence: null,
  headers: {},
  deliveries,
  body: JSON.stringify(body),
})
const receive = (message: IncomingMessage) =>
  inbox.receive<{ order: string }>(message, async ({ order }, { tx }) => {
    if (order === '') throw new Error('an order without a number')
    await tx.query('insert into invoices (order_id) values (?)', [order])
  })

// The broker delivers twice: one invoice, and the copy can be explained.
assert.equal((await receive(delivery('m1', { order: 'A7' }))).kind, 'handled')
const copy = await receive(delivery('m1', { order: 'A7' }, 2))
assert.ok(copy.kind === 'duplicate' && copy.first.settled.kind === 'handled')
// The same id for something else is not dropped in silence.
assert.equal((await receive(delivery('m1', { order: 'B8' }))).kind, 'conflict')
// What always fails does not block the others: it is put off, then parked for a person.
assert.equal((await receive(delivery('m2', { order: '' }))).kind, 'later')
assert.equal((await receive(delivery('m2', { order: '' }))).kind, 'parked')
const { rows } = await inbox.deadLetters.list({ reason: 'failed' })
assert.equal(rows[0]?.failure?.message, 'an order without a number')

assert.equal((await store.sql.query('select order_id from invoices')).length, 1)
console.log('five deliveries, one invoice, one dead letter and one conflict')
await once.stop()
rmSync(folder, { recursive: true })
