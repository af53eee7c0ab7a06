import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLedger } from 'onceonly'
import { createOutbox, createRelay } from 'onceonly/outbox'
import { sqliteStore } from 'onceonly/sqlite'
import { createRoomPublisher, createSqlRoomLog, createStreamRegion } from 'onceonly/stream/server'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-example-'))
const store = sqliteStore(join(folder, 'rooms.db'))
const region = createStreamRegion({ region: 'eu', log: createSqlRoomLog({ store, region: 'eu' }) })

// The server says something. A second call under the same id, in any process or region, stores nothing new.
const opened = await region.publish('lobby', { text: 'The shop is open.' }, { id: 'open-2026-11-18', from: 'shop' })
const again = await region.publish('lobby', { text: 'The shop is open.' }, { id: 'open-2026-11-18', from: 'shop' })
assert.deepEqual(again, { ...opened, duplicate: true })

// In a transaction: the row and what is said about it, both or neither.
const once = createLedger({ store })
const outbox = createOutbox({ ledger: once })
createRelay({ ledger: once, publisher: createRoomPublisher({ region }) })
const pay = once.operation<{ order: string }>({ name: 'order.pay', effect: 'transaction' })
await pay.run({ tenant: 'shop', caller: 'web', key: 'order-42' }, { order: '42' }, async ({ outbox: open }) => {
  await open.add({ topic: 'room.lobby', key: 'lobby', body: { text: 'Order 42 was paid.' } })
})
while ((await outbox.status()).pending > 0) await new Promise((resolve) => setTimeout(resolve, 20))

console.log('one message of a server, and one of a transaction, each stored once')
await region.stop()
await once.stop()
rmSync(folder, { recursive: true })
