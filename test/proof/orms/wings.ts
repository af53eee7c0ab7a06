import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { TestContext } from 'node:test'
import { createLedger, isOnceError } from 'onceonly'
import { createEngine, defineRun } from 'onceonly/run'
import { createSaga, defineSaga, event } from 'onceonly/saga'
import { atEnd } from '../../support/stores/postgres/store.ts'
import type { OrmCase } from './kit.ts'
import { openShop, who } from './shop.ts'

const fresh = () => randomUUID().slice(0, 8)

type Shop = Awaited<ReturnType<typeof openShop>>

/** Sagas and the transactional steps of runs get the ORM's handle, in the ORM's own transaction. */
export const wingCases: Readonly<Record<string, OrmCase>> = {
  'saga: its handlers get the handle, and their rows commit with its state': async (t, row) => {
    const shop = await openShop(t, row)
    const { orm, ledger, orders } = shop
    const key = fresh()
    let fails = true
    const definition = defineSaga({
      name: `parcels-${key}`,
      transactions: orm.transactions,
      events: { Packed: event<{ id: string }>({ correlate: ({ id }) => id }) },
      states: ['OnItsWay'],
      terminal: ['Done'],
      data: () => ({}),
      table: {
        initial: {
          Packed: {
            to: ['OnItsWay'],
            async handle(_data, { id }, { tx, transitionTo }) {
              await orm.insert(tx, id)
              if (fails) throw new Error('out of stock')
              transitionTo('OnItsWay')
            },
          },
        },
        OnItsWay: {
          Packed: {
            to: ['Done'],
            async handle(_data, { id }, { tx, transitionTo }) {
              await orm.insert(tx, `${id}-b`)
              transitionTo('Done')
            },
          },
        },
      },
    })
    const saga = createSaga({ ledger, definition, background: false, inbox: { maxFailures: 5 } })
    atEnd(t, () => saga.stop())
    const packed = (id: string) => saga.handle(messageOf(id, 'Packed', { id: key }))
    assert.deepEqual([(await packed('m1')).kind, await orders(key), await saga.get(key)], ['later', [], null])
    fails = false
    assert.deepEqual([(await packed('m1')).kind, (await packed('m1')).kind], ['handled', 'duplicate'])
    assert.deepEqual([await orders(key), (await saga.get(key))?.state], [[key], 'OnItsWay'])
    assert.equal((await packed('m2')).kind, 'handled')
    assert.deepEqual([await orders(key), (await saga.get(key))?.state], [[key, `${key}-b`], 'Done'])
  },

  'saga: without `transactions` its handlers get `tx.query`, in the same transaction': async (t, row) => {
    const { ledger, orders } = await openShop(t, row)
    const key = fresh()
    const definition = defineSaga({
      name: `plain-${key}`,
      events: { Packed: event<{ id: string }>({ correlate: ({ id }) => id }) },
      states: ['OnItsWay'],
      terminal: [],
      data: () => ({}),
      table: {
        initial: {
          Packed: {
            to: ['OnItsWay'],
            async handle(_data, { id }, { tx, transitionTo }) {
              await tx.query('INSERT INTO orders VALUES (?)', [id])
              transitionTo('OnItsWay')
            },
          },
        },
        OnItsWay: { Packed: { kind: 'ignore' } },
      },
    })
    const saga = createSaga({ ledger, definition, background: false })
    atEnd(t, () => saga.stop())
    assert.equal((await saga.handle(messageOf('m1', 'Packed', { id: key }))).kind, 'handled')
    assert.deepEqual(await orders(key), [key])
  },

  'step: it gets the handle, and its rows commit with its result': async (t, row) => {
    const shop = await openShop(t, row)
    const { orm, orders } = shop
    const key = fresh()
    let acted = 0
    const { output, engine, runId } = await ran(t, shop, key, async (tx) => {
      acted += 1
      await orm.insert(tx, key)
      if (acted === 1) throw new Error('out of stock')
      return 'placed'
    })
    assert.deepEqual([output, acted, await orders(key)], ['placed', 2, [key]])
    assert.deepEqual(
      (await engine.get(runId)).steps.map(({ state, attempts }) => [state, attempts]),
      [['succeeded', 2]],
    )
  },

  'step: an operation of the ledger is a part of it, with the same handle': async (t, row) => {
    const shop = await openShop(t, row)
    const { orm, place, orders, stateOf } = shop
    const key = fresh()
    let acted = 0
    await ran(t, shop, key, async (tx) => {
      acted += 1
      await orm.insert(tx, `${key}-a`)
      await place.run(who(key), key, (inner) => orm.insert(inner.tx, `${key}-b`))
      if (acted === 1) throw new Error('out of stock')
      return null
    })
    assert.deepEqual([acted, await orders(key), await stateOf(key)], [2, [`${key}-a`, `${key}-b`], 'succeeded'])
  },

  'step: when it ends its transaction, no result is recorded in it': async (t, row) => {
    const shop = await openShop(t, row)
    const { orm } = shop
    const key = fresh()
    const failing = ran(t, shop, key, async (tx) => {
      await orm.insert(tx, key)
      await orm.raw(tx, 'COMMIT')
      return 'placed'
    })
    await assert.rejects(failing, (error) => isOnceError(error, 'run_failed'))
  },

  'step: a failure that is hidden before COMMIT is no result': async (t, row) => {
    const shop = await openShop(t, row)
    const { orm, orders } = shop
    if (orm.failBeforeCommit === undefined) return t.skip('it calls no code of the user there')
    const key = fresh()
    let acted = 0
    const { output } = await ran(t, shop, key, async (tx) => {
      acted += 1
      if (acted === 1) orm.failBeforeCommit?.()
      await orm.insert(tx, key)
      return 'placed'
    })
    assert.deepEqual([output, acted, await orders(key)], ['placed', 2, [key]])
  },

  'step: its result is recorded where its transaction began': async (t, row) => {
    const shop = await openShop(t, row)
    const { orm, orders } = shop
    const key = fresh()
    const { output } = await ran(t, shop, key, async (tx) => {
      await orm.raw(tx, `INSERT INTO orders VALUES ('${key}')`)
      await orm.raw(tx, 'SET LOCAL search_path TO pg_catalog')
      return 'placed'
    })
    assert.deepEqual([output, await orders(key)], ['placed', [key]])
  },

  'a saga or a run with the transactions of another ORM, or without a ledger that has them, is refused': async (
    t,
    row,
  ) => {
    const { orm, ledger, store } = await openShop(t, row)
    const plain = createLedger({ store, background: false })
    atEnd(t, () => plain.stop())
    const body = async () => null
    const refuses = (message: string) => ({ code: 'bad_option', message })
    await assert.rejects(
      createEngine({ ledger: plain, runs: [defineRun('order', body, { transactions: orm.transactions })] }),
      refuses(
        'The run order has `transactions`, and its ledger has none. Give createLedger({ store, transactions }) the same object.',
      ),
    )
    await assert.rejects(
      createEngine({ ledger, runs: [defineRun('order', body, { transactions: { ...orm.transactions } })] }),
      refuses(
        'The run order has `transactions`, and they are not those of its ledger. Give createLedger({ store, transactions }) the same object.',
      ),
    )
    const events = { Packed: event<{ id: string }>({ correlate: ({ id }) => id }) }
    const table = { initial: { Packed: { kind: 'ignore' } } } as const
    const base = { name: 'parcels', events, states: [], terminal: [], data: () => ({}), table } as const
    const definition = defineSaga({ ...base, transactions: orm.transactions })
    assert.throws(
      () => createSaga({ ledger: plain, definition }),
      refuses(
        'The saga parcels has `transactions`, and its ledger has none. Give createLedger({ store, transactions }) the same object.',
      ),
    )
  },
}

function messageOf(id: string, topic: string, body: unknown) {
  return { id, topic, body: JSON.stringify(body), headers: {}, key: null, sequence: null, deliveries: null }
}

/** A run of one transactional step. */
async function ran(t: TestContext, { ledger, orm }: Shop, key: string, act: (tx: unknown) => Promise<unknown>) {
  const order = defineRun(
    `order-${key}`,
    (run, _input: null) =>
      run.step('place', { semantics: 'transactional', retry: { attempts: 2, baseMs: 1 } }, ({ tx }) => act(tx)),
    { transactions: orm.transactions },
  )
  const engine = await createEngine({ ledger, runs: [order] })
  atEnd(t, () => engine.stop())
  const runId = `run-${key}`
  const { result } = await engine.start(order, { runId, input: null })
  return { output: await result({ waitMs: 30_000 }), engine, runId }
}
