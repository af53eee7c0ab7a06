import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { TestContext } from 'node:test'
import { createLedger, final, isOnceError } from 'onceonly'
import { createInbox } from 'onceonly/inbox'
import { atEnd, databaseUrl, freshSchema } from '../../support/stores/postgres/store.ts'
import type { OrmRow } from './app/row.ts'
import { killInside } from './kill.ts'
import { openServerShop, openShop, who } from './shop.ts'

/** What must hold for every ORM, when the ledger opens its transaction, and when the user did. */
export type OrmCase = (t: TestContext, row: OrmRow) => Promise<void>

const CONFLICT = { whileRunning: 'conflict' } as const

const fresh = () => randomUUID().slice(0, 8)

export const cases: Readonly<Record<string, OrmCase>> = {
  'rows and record commit together, and a retry replays': async (t, row) => {
    const { orm, place, orders, stateOf } = await openShop(t, row)
    const key = fresh()
    let runs = 0
    const run = () =>
      place.run(who(key), key, async ({ tx }) => {
        runs += 1
        await orm.insert(tx, key)
        return { placed: key }
      })
    assert.deepEqual([await run(), await run()], [{ placed: key }, { placed: key }])
    assert.deepEqual([runs, await orders(key), await stateOf(key)], [1, [key], 'succeeded'])
  },

  'nothing stays of an effect that throws': async (t, row) => {
    const { orm, place, orders, stateOf } = await openShop(t, row)
    const key = fresh()
    const failing = place.run(who(key), key, async ({ tx }) => {
      await orm.insert(tx, key)
      throw new Error('out of stock')
    })
    await assert.rejects(failing, /out of stock/)
    assert.deepEqual([await orders(key), await stateOf(key)], [[], undefined])
    await place.run(who(key), key, ({ tx }) => orm.insert(tx, key))
    assert.deepEqual([await orders(key), await stateOf(key)], [[key], 'succeeded'])
  },

  'a failure that is hidden before COMMIT is no success': async (t, row) => {
    const { orm, place, orders, stateOf } = await openShop(t, row)
    if (orm.failBeforeCommit === undefined) return t.skip('it calls no code of the user there')
    const key = fresh()
    orm.failBeforeCommit()
    const hidden = place.run(who(key), key, ({ tx }) => orm.insert(tx, key))
    await assert.rejects(hidden, (error) => isOnceError(error, 'transaction_aborted') && error.applied === 'no')
    assert.deepEqual([await orders(key), await stateOf(key)], [[], undefined])
    await place.run(who(key), key, ({ tx }) => orm.insert(tx, key))
    assert.deepEqual([await orders(key), await stateOf(key)], [[key], 'succeeded'])
  },

  'a final failure is recorded without what it wrote': async (t, row) => {
    const { orm, place, orders, stateOf } = await openShop(t, row)
    const key = fresh()
    const run = () =>
      place.run(who(key), key, async ({ tx }) => {
        await orm.insert(tx, key)
        throw final(new Error('card declined'))
      })
    await assert.rejects(run(), /card declined/)
    await assert.rejects(run(), /card declined/)
    assert.deepEqual([await orders(key), await stateOf(key)], [[], 'failed'])
  },

  'a twin in another process waits and replays': async (t, row) => {
    const one = await openShop(t, row)
    const two = await openShop(t, row, { beside: one })
    const key = fresh()
    const entered = Promise.withResolvers<void>()
    const leave = Promise.withResolvers<void>()
    const first = one.place.run(who(key), key, async ({ tx }) => {
      await one.orm.insert(tx, key)
      entered.resolve()
      await leave.promise
      return 'first'
    })
    await entered.promise
    const second = two.place.run(who(key), key, () => 'second')
    await two.untilBlocked()
    leave.resolve()
    assert.deepEqual([await first, await second], ['first', 'first'])
    assert.deepEqual(await one.orders(key), [key])
  },

  'a twin is refused at once where it shall not wait': async (t, row) => {
    const one = await openShop(t, row, CONFLICT)
    const two = await openShop(t, row, { ...CONFLICT, beside: one })
    const key = fresh()
    const value = await one.place.run(who(key), key, async ({ tx }) => {
      await one.orm.insert(tx, key)
      const execution = await two.place.execute(who(key), key, () => 'second')
      assert.equal(execution.kind === 'refused' && execution.error.code, 'in_progress')
      return 'first'
    })
    assert.deepEqual([value, await one.orders(key)], ['first', [key]])
  },

  'nested transactions are parts of it': async (t, row) => {
    const { orm, place, orders, stateOf } = await openShop(t, row)
    const { nested } = orm
    if (nested === null) return t.skip('this ORM has no nested transactions')
    const key = fresh()
    const failing = place.run(who(key), key, async ({ tx }) => {
      await nested(tx, (inner) => orm.insert(inner, `${key}-a`))
      throw new Error('out of stock')
    })
    await assert.rejects(failing, /out of stock/)
    assert.deepEqual([await orders(key), await stateOf(key)], [[], undefined])
    await place.run(who(key), key, async ({ tx }) => {
      await nested(tx, (inner) => orm.insert(inner, `${key}-b`))
      const undone = nested(tx, async (inner) => {
        await orm.insert(inner, `${key}-c`)
        throw new Error('undone')
      })
      await assert.rejects(undone, /undone/)
    })
    assert.deepEqual([await orders(key), await stateOf(key)], [[`${key}-b`], 'succeeded'])
  },

  'within: a nested transaction of yours may hold it, and one of the effect is a part of it': async (t, row) => {
    const { orm, place, orders, stateOf } = await openShop(t, row)
    const { nested } = orm
    if (nested === null) return t.skip('this ORM has no nested transactions')
    const key = fresh()
    await orm.transaction(async (handle) => {
      await orm.insert(handle, `${key}-0`)
      // What a unit of work has only collected would be lost with the nested part.
      await orm.transactions.flush?.(handle)
      const undone = nested(handle, async (inner) => {
        await place.within(inner, who(`${key}-a`), key, ({ tx }) => orm.insert(tx, `${key}-a`))
        throw new Error('undone')
      })
      await assert.rejects(undone, /undone/)
      await nested(handle, async (inner) => {
        await place.within(inner, who(`${key}-b`), key, async ({ tx }) => {
          await nested(tx, (deeper) => orm.insert(deeper, `${key}-b`))
          const failing = nested(tx, async (deeper) => {
            await orm.insert(deeper, `${key}-c`)
            throw new Error('undone')
          })
          await assert.rejects(failing, /undone/)
        })
      })
      await orm.insert(handle, `${key}-d`)
    })
    assert.deepEqual(await orders(key), [`${key}-0`, `${key}-b`, `${key}-d`])
    assert.deepEqual([await stateOf(`${key}-a`), await stateOf(`${key}-b`)], [undefined, 'succeeded'])
  },

  'an operation inside of another is a part of it': async (t, row) => {
    const { orm, place, ledger, orders, stateOf } = await openShop(t, row)
    const pack = ledger.operation<string>({ name: 'order.pack', effect: 'transaction' })
    const key = fresh()
    await place.run(who(key), key, async ({ tx }) => {
      await orm.insert(tx, `${key}-a`)
      await pack.run(who(`${key}-p`), key, (inner) => orm.insert(inner.tx, `${key}-b`))
      const failing = pack.run(who(`${key}-q`), key, async (inner) => {
        await orm.insert(inner.tx, `${key}-c`)
        throw new Error('undone')
      })
      await assert.rejects(failing, /undone/)
    })
    assert.deepEqual(await orders(key), [`${key}-a`, `${key}-b`])
    assert.deepEqual([await stateOf(`${key}-p`), await stateOf(`${key}-q`)], ['succeeded', undefined])
  },

  'a transaction that the effect ended is lost, and nothing is recorded as done': async (t, row) => {
    const { orm, place, stateOf } = await openShop(t, row)
    const key = fresh()
    const ended = place.run(who(key), key, async ({ tx }) => {
      await orm.insert(tx, key)
      await orm.raw(tx, 'COMMIT')
      return 'done'
    })
    await assert.rejects(ended, (error) => isOnceError(error, 'transaction_lost'))
    assert.notEqual(await stateOf(key), 'succeeded')
  },

  'an effect that hides a failed statement commits nothing': async (t, row) => {
    const { orm, place, orders, stateOf } = await openShop(t, row)
    const key = fresh()
    const hiding = place.run(who(key), key, async ({ tx }) => {
      await orm.raw(tx, `INSERT INTO orders VALUES ('${key}')`)
      await orm.raw(tx, `INSERT INTO orders VALUES ('${key}')`).catch(() => undefined)
      return 'done'
    })
    // Some ORMs say it by themselves, with the error that was hidden.
    const says = (error: unknown) => isOnceError(error, 'transaction_aborted') || /duplicate key/.test(String(error))
    await assert.rejects(hiding, says)
    assert.deepEqual([await orders(key), await stateOf(key)], [[], undefined])
  },

  'a session that is ended under its effect is tried again': async (t, row) => {
    const { orm, place, orders, pool, stateOf } = await openServerShop(t, row)
    const key = fresh()
    let runs = 0
    await place.run(who(key), key, async ({ tx }) => {
      runs += 1
      await orm.insert(tx, key)
      if (runs === 1) {
        await orm.raw(tx, `SELECT set_config('application_name', '${key}', false)`)
        await pool.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1', [key])
        await orm.raw(tx, 'SELECT 1')
      }
    })
    assert.deepEqual([runs, await orders(key), await stateOf(key)], [2, [key], 'succeeded'])
  },

  'messages and permanent claims commit with it': async (t, row) => {
    const { orm, place, messages } = await openShop(t, row)
    const key = fresh()
    const run = (fails: boolean) =>
      place.run(who(key), key, async ({ tx, outbox, unique, attach }) => {
        await orm.insert(tx, key)
        await attach({ type: 'order', id: key })
        await outbox.add({ topic: 'order.placed', key, body: { key } })
        const { kind } = await unique('order', key)
        if (fails) throw new Error('out of stock')
        return kind
      })
    await assert.rejects(run(true), /out of stock/)
    assert.equal(await messages(key), 0)
    assert.equal(await run(false), 'claimed')
    assert.equal(await messages(key), 1)
  },

  'within: your commit commits both, your rollback neither': async (t, row) => {
    const { orm, place, orders, stateOf } = await openShop(t, row)
    const key = fresh()
    const order = (fails: boolean) =>
      orm.transaction(async (handle) => {
        await orm.insert(handle, `${key}-a`)
        const value = await place.within(handle, who(key), key, async ({ tx }) => {
          await orm.insert(tx, `${key}-b`)
          return 'placed'
        })
        if (fails) throw new Error('changed my mind')
        return value
      })
    await assert.rejects(order(true), /changed my mind/)
    assert.deepEqual([await orders(key), await stateOf(key)], [[], undefined])
    assert.equal(await order(false), 'placed')
    assert.deepEqual([await orders(key), await stateOf(key)], [[`${key}-a`, `${key}-b`], 'succeeded'])
    const again = await orm.transaction((handle) => place.within(handle, who(key), key, () => 'again'))
    assert.equal(again, 'placed')
  },

  'within: an effect that throws leaves your transaction usable': async (t, row) => {
    const { orm, place, orders, stateOf } = await openShop(t, row)
    const key = fresh()
    await orm.transaction(async (handle) => {
      const failing = place.within(handle, who(key), key, async ({ tx }) => {
        await orm.raw(tx, `INSERT INTO orders VALUES ('${key}-a')`)
        await orm.raw(tx, `INSERT INTO orders VALUES ('${key}-a')`)
      })
      await assert.rejects(failing)
      await orm.insert(handle, `${key}-b`)
    })
    assert.deepEqual([await orders(key), await stateOf(key)], [[`${key}-b`], undefined])
  },

  'within: twice under one key is once, before the commit too': async (t, row) => {
    const { orm, place, orders } = await openShop(t, row)
    const key = fresh()
    let runs = 0
    const values = await orm.transaction(async (handle) => {
      const one = () =>
        place.within(handle, who(key), key, async ({ tx }) => {
          runs += 1
          await orm.insert(tx, key)
          return runs
        })
      return [await one(), await one()]
    })
    assert.deepEqual([values, runs, await orders(key)], [[1, 1], 1, [key]])
  },

  'within: a twin waits for your commit and replays': async (t, row) => {
    const one = await openShop(t, row)
    const two = await openShop(t, row, { beside: one })
    const key = fresh()
    const entered = Promise.withResolvers<void>()
    const leave = Promise.withResolvers<void>()
    const first = one.orm.transaction(async (handle) => {
      const value = await one.place.within(handle, who(key), key, () => 'first')
      entered.resolve()
      await leave.promise
      return value
    })
    await entered.promise
    const second = two.orm.transaction((handle) => two.place.within(handle, who(key), key, () => 'second'))
    await two.untilBlocked()
    leave.resolve()
    assert.deepEqual([await first, await second], ['first', 'first'])
  },

  'within: the settings of your transaction stay as they were': async (t, row) => {
    const { orm, place } = await openShop(t, row)
    const { transactions } = orm
    const settings = `SELECT current_setting('lock_timeout') AS lock, current_setting('search_path') AS path`
    await orm.transaction(async (handle) => {
      await orm.raw(handle, `SET LOCAL lock_timeout = '7s'`)
      const before = await transactions.query(handle, settings, [])
      await place.within(handle, who(fresh()), 'a', () => null)
      assert.deepEqual(await transactions.query(handle, settings, []), before)
    })
  },

  'outbox.add takes a transaction that you opened': async (t, row) => {
    const { orm, outbox, messages } = await openShop(t, row)
    const key = fresh()
    const add = (fails: boolean) =>
      orm.transaction(async (handle) => {
        await outbox.add(handle, { topic: 'order.placed', key, body: null })
        if (fails) throw new Error('changed my mind')
      })
    await assert.rejects(add(true), /changed my mind/)
    assert.equal(await messages(key), 0)
    await add(false)
    assert.equal(await messages(key), 1)
  },

  'tables in a schema of their own are found, and your path stays': async (t, row) => {
    const schema = freshSchema()
    const { orm, place, outbox, orders, stateOf } = await openShop(t, row, { schema })
    const key = fresh()
    await place.run(who(`${key}-a`), key, async (context) => {
      await orm.insert(context.tx, `${key}-a`)
      await context.outbox.add({ topic: 'order.placed', body: null })
    })
    const path = `SELECT current_setting('search_path') AS path`
    await orm.transaction(async (handle) => {
      const before = await orm.transactions.query(handle, path, [])
      await place.within(handle, who(`${key}-b`), key, ({ tx }) => orm.insert(tx, `${key}-b`))
      await outbox.add(handle, { topic: 'order.placed', body: null })
      assert.deepEqual(await orm.transactions.query(handle, path, []), before)
    })
    assert.deepEqual(await orders(key), [`${key}-a`, `${key}-b`])
    assert.deepEqual([await stateOf(`${key}-a`), await stateOf(`${key}-b`)], ['succeeded', 'succeeded'])
  },

  'messages are handled once, with rows of the ORM': async (t, row) => {
    const { orm, ledger, orders } = await openShop(t, row)
    const key = fresh()
    const inbox = createInbox({ ledger, consumer: `shipping-${key}`, background: false })
    t.after(() => inbox.stop())
    const message = {
      id: key,
      topic: 'order.placed',
      body: '{}',
      headers: {},
      key: null,
      sequence: null,
      deliveries: null,
    }
    const deliver = async (fails: boolean) =>
      (
        await inbox.receive(message, async (_, { tx }) => {
          await orm.insert(tx, key)
          if (fails) throw new Error('out of stock')
        })
      ).kind
    assert.deepEqual([await deliver(true), await orders(key)], ['later', []])
    assert.deepEqual([await deliver(false), await deliver(false)], ['handled', 'duplicate'])
    assert.deepEqual(await orders(key), [key])
  },

  'within: a twin gets its answer before the ORM ends its transaction': async (t, row) => {
    const [one, two] = [await openShop(t, row), await openShop(t, row)]
    if (two.orm.transactions.claimWaitMs === undefined) return t.skip('this ORM ends no transaction by itself')
    const key = fresh()
    await one.place.run(who(key), key, async () => {
      await two.orm.transaction(async (handle) => {
        const twin = two.place.within(handle, who(key), key, () => 'second')
        await assert.rejects(twin, (error) => isOnceError(error, 'in_progress'))
        await two.orm.insert(handle, key)
      })
    })
    assert.deepEqual(await one.orders(key), [key])
  },

  'what is no transaction is refused before anything is claimed': async (t, row) => {
    const { place, outbox, stateOf } = await openShop(t, row)
    const key = fresh()
    const refused = /is no open transaction\. Pass the one that your transaction's callback was given\./
    await assert.rejects(
      place.within({}, who(key), key, () => null),
      refused,
    )
    await assert.rejects(outbox.add({}, { topic: 'order.placed', body: null }), refused)
    assert.equal(await stateOf(key), undefined)
  },

  'an ORM on another database is refused': async (t, row) => {
    const { store } = await openShop(t, row)
    const elsewhere = new URL(await databaseUrl())
    elsewhere.pathname = '/postgres'
    const orm = await row.open(elsewhere.href)
    atEnd(t, () => orm.close())
    const ledger = createLedger({ store, transactions: orm.transactions, background: false })
    atEnd(t, () => ledger.stop())
    const place = ledger.operation<string>({ name: 'order.elsewhere', effect: 'transaction' })
    const text =
      /is connected to the database `postgres`, which has no tables of the ledger; the store is on `onceonly_test/
    await assert.rejects(
      place.run(who(fresh()), 'a', () => null),
      text,
    )
  },

  'a process that is killed between the statements leaves nothing': async (t, row) => {
    const { orm, place, orders, stateOf, url } = await openShop(t, row)
    const key = fresh()
    const keys = [`${key}-run`, `${key}-within`]
    // A file has one writer, so a process has only one of the two transactions open.
    await killInside(row, url, key, row.sqlite === undefined ? 'both' : 'run')
    assert.deepEqual(
      [await orders(key), await stateOf(`${key}-run`), await stateOf(`${key}-within`)],
      [[], undefined, undefined],
    )
    for (const each of keys) await place.run(who(each), each, ({ tx }) => orm.insert(tx, each))
    assert.deepEqual(await orders(key), keys)
  },
}
