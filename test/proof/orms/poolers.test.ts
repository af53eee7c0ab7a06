import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { TestContext } from 'node:test'
import { after, test } from 'node:test'
import { isOnceError } from 'onceonly'
import { startPgbouncer } from '../../../tools/servers/pgbouncer.ts'
import { testPostgres } from '../../support/stores/postgres/store.ts'
import type { OrmRow } from './app/row.ts'
import { usual } from './app/row.ts'
import { installOrms } from './install.ts'
import { allRows } from './rows.ts'
import type { Shop, ShopOptions } from './shop.ts'
import { openShop, who } from './shop.ts'

/** ORMs where connections are few: a pool of one, and PgBouncer in transaction mode, as on serverless platforms. */

const server = process.env['ONCEONLY_TEST_POSTGRES_URL']
const missing = await installOrms()
const rows = missing === false ? await allRows('server') : []
// Under CI a PgBouncer that is missing is an error here, as any server is.
const pooler = server === undefined || missing !== false ? null : await startPgbouncer(server)
if (pooler === null) test('ORMs behind PgBouncer', { skip: missing || 'no PgBouncer' }, () => {})
else after(() => pooler.stop())

const places: Readonly<Record<string, ShopOptions>> = {
  'a pool of one': { connections: { ...usual, max: 1 } },
  ...(pooler === null ? {} : { PgBouncer: { pooler: pooler.url, connections: { ...usual, prepare: false } } }),
}

const fresh = () => randomUUID().slice(0, 8)

type Case = (t: TestContext, row: OrmRow, options: ShopOptions) => Promise<void>

/** An operation inside of its effect, until it may leave. Beside the caller, because MikroORM follows its transactions. */
async function running({ orm, place }: Shop, key: string) {
  const [entered, leave] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const first = place.run(who(key), key, async ({ tx }) => {
    await orm.insert(tx, `${key}-a`)
    entered.resolve()
    await leave.promise
    return 'first'
  })
  await Promise.race([entered.promise, first])
  return { first, leave: leave.resolve }
}

const cases: Readonly<Record<string, Case>> = {
  'rows, record and message commit together, many at once': async (t, row, options) => {
    const { orm, place, orders, messages } = await openShop(t, row, options)
    const key = fresh()
    const keys = Array.from({ length: 8 }, (_, index) => `${key}-${index}`)
    const run = (each: string) =>
      place.run(who(each), each, async ({ tx, outbox }) => {
        await orm.insert(tx, each)
        await outbox.add({ topic: 'order.placed', key, body: null })
        return each
      })
    assert.deepEqual(await Promise.all([...keys, ...keys].map(run)), [...keys, ...keys])
    assert.deepEqual([await orders(key), await messages(key)], [keys, keys.length])
  },

  'within: your commit commits both, your rollback neither': async (t, row, options) => {
    const { orm, place, outbox, orders, messages, stateOf } = await openShop(t, row, options)
    const key = fresh()
    const order = (fails: boolean) =>
      orm.transaction(async (handle) => {
        await orm.insert(handle, `${key}-a`)
        await place.within(handle, who(key), key, ({ tx }) => orm.insert(tx, `${key}-b`))
        await outbox.add(handle, { topic: 'order.placed', key, body: null })
        if (fails) throw new Error('changed my mind')
      })
    await assert.rejects(order(true), /changed my mind/)
    assert.deepEqual([await orders(key), await stateOf(key), await messages(key)], [[], undefined, 0])
    await order(false)
    assert.deepEqual([await orders(key), await stateOf(key)], [[`${key}-a`, `${key}-b`], 'succeeded'])
    assert.equal(await messages(key), 1)
  },

  'within: a twin of one that runs gets its answer, and its transaction continues': async (t, row, options) => {
    const conflict = { ...options, whileRunning: 'conflict' } as const
    const [one, two] = [await openShop(t, row, conflict), await openShop(t, row, conflict)]
    const key = fresh()
    const { first, leave } = await running(one, key)
    await two.orm.transaction(async (handle) => {
      const twin = two.place.within(handle, who(key), key, () => 'second')
      await assert.rejects(twin, (error) => isOnceError(error, 'in_progress'))
      await two.orm.insert(handle, `${key}-b`)
    })
    leave()
    assert.equal(await first, 'first')
    assert.deepEqual(await one.orders(key), [`${key}-a`, `${key}-b`])
  },

  'a twin in another process waits and replays': async (t, row, options) => {
    const [one, two] = [await openShop(t, row, options), await openShop(t, row, options)]
    const key = fresh()
    const { first, leave } = await running(one, key)
    const second = two.place.run(who(key), key, () => 'second')
    await two.untilBlocked()
    leave()
    assert.deepEqual([await first, await second, await one.orders(key)], ['first', 'first', [`${key}-a`]])
  },
}

for (const row of rows) {
  for (const [where, options] of Object.entries(places)) {
    for (const [name, each] of Object.entries(cases)) {
      testPostgres(`${row.name}, ${where}: ${name}`, (t) => each(t, row, options))
    }
  }
}
