import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLedger } from 'onceonly'
import { sqliteStore } from 'onceonly/sqlite'

const folder = mkdtempSync(join(tmpdir(), 'onceonly-example-'))
const store = sqliteStore(join(folder, 'orders.db'))
const once = createLedger({ store })
await store.sql.query('create table orders (id integer primary key, item text not null)')

const place = once.operation<{ item: string }>({ name: 'order.place', effect: 'transaction' })
const command = { item: 'a book' }

// A double click, a retry, a redelivery: the order and the record of its key commit together, or not at all.
const answers = await Promise.all(
  Array.from({ length: 5 }, () =>
    place.run({ tenant: 'acme', caller: 'shop', key: 'click-1' }, command, async ({ tx }) => {
      const [order] = await tx.query<{ id: number }>('insert into orders (item) values (?) returning id', [
        command.item,
      ])
      return order
    }),
  ),
)

assert.deepEqual(new Set(answers.map((order) => order?.id)), new Set([1]))
assert.equal((await store.sql.query('select id from orders')).length, 1)
console.log('five clicks, one order')
await once.stop()
rmSync(folder, { recursive: true })
