import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { TestContext } from 'node:test'
import { createLedger, isOnceError } from 'onceonly'
import type { SqliteDriver, SqliteDriverDatabase, SqliteStoreOptions } from 'onceonly/sqlite'
import { sqliteStore } from 'onceonly/sqlite'
import { atEnd } from '../../support/stores/postgres/store.ts'
import type { OpenedOrm } from './app/row.ts'
import { killInside } from './kill.ts'
import { freshFile, who } from './shop.ts'

interface FileOrm extends OpenedOrm<object> {
  readonly driver: SqliteDriver
  pragma(text: string): unknown
  connect(): SqliteDriverDatabase
}

interface Sqlite {
  kyselyOnFile(path: string): FileOrm
}

/** Only once it is installed. */
const sqlite = async () => (await import('./app/sqlite.ts' as string)) as Sqlite

async function open(t: TestContext, options: (made: Pick<FileOrm, 'driver'>) => SqliteStoreOptions = (made) => made) {
  const { kyselyOnFile } = await sqlite()
  const path = freshFile(t)
  const orm = kyselyOnFile(path)
  const store = sqliteStore(path, options({ driver: orm.driver }))
  const ledger = createLedger({ store, transactions: orm.transactions, background: false })
  atEnd(t, async () => {
    await ledger.stop()
    await store.stop()
    await orm.close()
  })
  await store.sql.query('CREATE TABLE orders (name text PRIMARY KEY)')
  const place = ledger.operation<string>({ name: 'order.place', effect: 'transaction' })
  return { path, orm, store, ledger, place }
}

/** What concerns the file, its only writer, and the driver that opens it. */
export const fileCases: Readonly<Record<string, (t: TestContext) => Promise<void>>> = {
  'a driver whose locks the store does not see is refused, and nothing stays': async (t) => {
    const { place, store, orm } = await open(t, () => ({}))
    const text =
      /^kysely opens .*shop\.db by another driver than the store, .*sqliteStore\(path, \{ driver: Database \}\)/
    const placing = place.run(who('a'), 'a', ({ tx }) => orm.insert(tx, 'a'))
    await assert.rejects(placing, (error) => isOnceError(error, 'bad_option') && text.test(error.message))
    assert.deepEqual(await store.sql.query('SELECT * FROM orders'), [])
  },

  'an ORM on another file is refused': async (t) => {
    const { kyselyOnFile } = await sqlite()
    const { store } = await open(t)
    const other = kyselyOnFile(freshFile(t))
    const ledger = createLedger({ store, transactions: other.transactions, background: false })
    atEnd(t, async () => {
      await ledger.stop()
      await other.close()
    })
    const place = ledger.operation<string>({ name: 'order.place', effect: 'transaction' })
    const text = /^kysely is connected to .*; the store is on .*\. Connect both to the same file\./
    await assert.rejects(
      place.run(who('a'), 'a', () => null),
      (error) => isOnceError(error, 'bad_option') && text.test(error.message),
    )
  },

  'a writer that is taken stops no other work of the process, and its driver keeps its own patience': async (t) => {
    const { place, orm, store } = await open(t)
    await place.run(who('first'), 'first', () => null)
    const other = orm.connect()
    other.exec('BEGIN IMMEDIATE')
    const placing = place.run(who('a'), 'a', ({ tx }) => orm.insert(tx, 'a'))
    let turns = 0
    // A call that slept inside of SQLite would keep every turn of the event loop from coming.
    while (turns < 20) {
      await new Promise((resolve) => setTimeout(resolve, 5))
      turns += 1
    }
    assert.deepEqual(await store.sql.query('SELECT * FROM orders'), [])
    other.exec('COMMIT')
    other.close()
    await placing
    const patience = await orm.transaction((tx) => orm.transactions.query(tx, 'PRAGMA busy_timeout', []))
    assert.deepEqual(Object.values(patience[0] ?? {}), [5_000])
  },

  'writes of the store and transactions of the ORM wait for each other': async (t) => {
    const { place, orm, store, ledger } = await open(t)
    const note = ledger.operation<string>({ name: 'order.note', effect: 'repeatable' })
    const keys = Array.from({ length: 20 }, (_, index) => `k${index}`)
    await Promise.all(
      keys.flatMap((key) => [
        place.run(who(key), key, ({ tx }) => orm.insert(tx, key)),
        note.run(who(key), key, () => null),
        orm.transaction((tx) => orm.insert(tx, `own-${key}`)),
        orm.transaction((tx) => place.within(tx, who(`w-${key}`), key, () => orm.insert(tx, `w-${key}`))),
      ]),
    )
    const [count] = await store.sql.query('SELECT count(*) AS rows FROM orders')
    assert.deepEqual(count, { rows: 60 })
  },

  'within: a transaction whose reading is out of date says so at once': async (t) => {
    const { place, orm, store } = await open(t)
    await place.run(who('first'), 'first', () => null)
    const reading = orm.transaction(async (tx) => {
      await orm.raw(tx, 'SELECT * FROM orders')
      await store.sql.query(`INSERT INTO orders VALUES ('between')`)
      return await place.within(tx, who('a'), 'a', () => orm.insert(tx, 'a'))
    })
    await assert.rejects(
      reading,
      (error) => isOnceError(error, 'store_busy') && /has read what another one has changed since/.test(error.message),
    )
  },

  'a twin in this process is refused at once where it shall not wait': async (t) => {
    const { ledger, orm, store } = await open(t)
    const definition = { name: 'order.once', effect: 'transaction', whileRunning: 'conflict' } as const
    const place = ledger.operation<string>(definition)
    const entered = Promise.withResolvers<void>()
    const leave = Promise.withResolvers<void>()
    const placing = place.run(who('a'), 'a', async ({ tx }) => {
      await orm.insert(tx, 'a')
      entered.resolve()
      await leave.promise
      return 'first'
    })
    await entered.promise
    // By another caller of the same process: else it would join in memory.
    const other = createLedger({ store, transactions: orm.transactions, background: false })
    atEnd(t, () => other.stop())
    const execution = await other.operation<string>(definition).execute(who('a'), 'a', () => 'second')
    leave.resolve()
    assert.equal(execution.kind === 'refused' && execution.error.code, 'in_progress')
    assert.equal(await placing, 'first')
  },

  '`run` inside of a transaction of the user names `within`': async (t) => {
    const { store, orm } = await open(t)
    const adopted = store.foreign?.on(orm.transactions)
    const call = { timeoutMs: 200, lockMs: 200, refuseTwinOf: null }
    const inside = orm.transaction(async () => await adopted?.run(async () => null, call))
    await assert.rejects(
      inside,
      (error) => isOnceError(error, 'store_busy') && /call `within` with its handle/.test(error.message),
    )
  },

  'a process that is killed inside of your transaction leaves nothing': async (t) => {
    const { path, place, orm, store } = await open(t)
    await killInside({ name: 'Kysely on better-sqlite3', file: 'sqlite' }, path, 'k', 'within')
    assert.deepEqual(await store.sql.query('SELECT * FROM orders'), [])
    await place.run(who('k-within'), 'k', ({ tx }) => orm.insert(tx, 'k'))
    assert.deepEqual(await store.sql.query('SELECT * FROM orders'), [{ name: 'k' }])
  },

  'a transaction of the user refuses an encrypted store without keys': async (t) => {
    const { path, orm, place } = await open(t)
    const sealed = sqliteStore(path, { driver: orm.driver, encryption: { keys: { a: randomBytes(32) } } })
    atEnd(t, () => sealed.stop())
    await sealed.clock.now({ timeoutMs: 10_000 })
    const claiming = orm.transaction((tx) => place.within(tx, who('a'), 'a', () => assert.fail('the effect ran')))
    await assert.rejects(claiming, (error) => isOnceError(error, 'encryption_key'))
  },

  'a commit that the ORM leaves to the system is on the disk before its caller hears of it': async (t) => {
    for (const sync of ['NORMAL', 'FULL'] as const) {
      const touched: string[] = []
      const { place, orm, store } = await open(t, ({ driver: Driver }) => ({
        driver: class extends Driver {
          override prepare(text: string) {
            touched.push(text)
            return super.prepare(text)
          }
        },
      }))
      await orm.pragma(`synchronous = ${sync}`)
      await place.run(who('a'), 'a', ({ tx }) => orm.insert(tx, 'a'))
      // A commit of the store waits for the disk, and for everything before it in the log.
      assert.equal(touched.includes('UPDATE onceonly_meta SET wakes = wakes WHERE one = 1'), sync === 'NORMAL')
      assert.deepEqual(await store.sql.query('SELECT * FROM orders'), [{ name: 'a' }])
    }
  },
}
