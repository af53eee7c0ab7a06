import assert from 'node:assert/strict'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { Kysely, SqliteDialect, sql } from 'kysely'
import { createLedger } from 'onceonly'
import { kysely } from 'onceonly/kysely'
import { sqliteStore } from 'onceonly/sqlite'

interface Tables {
  orders: { item: string }
}

process.chdir(mkdtempSync(join(tmpdir(), 'onceonly-guide-')))

const db = new Kysely<Tables>({ dialect: new SqliteDialect({ database: new Database('shop.db') }) })
const store = sqliteStore('shop.db', { driver: Database })
const once = createLedger({ store, transactions: kysely(db) })
const placeOrder = once.operation<{ item: string }>({ name: 'order.place', effect: 'transaction' })

await sql`create table orders (item text primary key)`.execute(db)
for (let turn = 0; turn < 2; turn++) {
  await placeOrder.run({ tenant: 'acme', caller: 'shop', key: 'o1' }, { item: 'lamp' }, async ({ tx }) => {
    await tx.insertInto('orders').values({ item: 'lamp' }).execute()
  })
}
assert.deepEqual(await db.selectFrom('orders').selectAll().execute(), [{ item: 'lamp' }])
await once.stop()
await db.destroy()
