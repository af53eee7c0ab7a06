import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import type { TestContext } from 'node:test'
import { test } from 'node:test'
import { applyTo } from '../../../testing/apply-all.ts'
import { isOnceError } from '../../core/errors.ts'
import type { SqlTx } from '../../store/sql.ts'
import type { SqliteStore } from './index.ts'
import { CALL, claimIn, claimOf, freshStore, leaseOf, settleOf, sleep, TRANSACTION } from './test-store.ts'

/** Short, because tests wait for it. */
const HOLD_MS = 400

async function storeWithOrders(t: TestContext, holdMs = 60_000): Promise<SqliteStore> {
  const store = freshStore(t, { internal: { holdMs } })
  await store.sql.query('CREATE TABLE orders (name TEXT PRIMARY KEY, cents INTEGER)')
  return store
}

async function orders(store: SqliteStore): Promise<unknown[]> {
  const rows = await store.sql.query<{ name: string }>('SELECT name FROM orders ORDER BY name')
  return rows.map(({ name }) => name)
}

const add = (tx: SqlTx, name: string) => tx.query('INSERT INTO orders (name) VALUES (?)', [name])

test('claim, business write and outcome commit together, or not at all', async (t) => {
  const store = await storeWithOrders(t)
  const id = await store.transactions.run(async ({ tx, apply }) => {
    const lease = leaseOf(await apply(claimOf('a')))
    await add(tx, 'kept')
    await apply(settleOf(lease))
    return lease.id
  }, TRANSACTION)
  const failing = store.transactions.run(async ({ tx, apply }) => {
    await apply(claimOf('b'))
    await add(tx, 'undone')
    throw new Error('changed my mind')
  }, TRANSACTION)
  await assert.rejects(failing, /changed my mind/)
  assert.deepEqual(await orders(store), ['kept'])
  const { records } = await store.claims.read([id, claimOf('b').id], CALL)
  assert.deepEqual([records[0]?.state, records[1]], ['succeeded', null])
})

test('a fence that a rolled-back effect has seen is not granted again', async (t) => {
  const store = await storeWithOrders(t)
  let seen = 0
  const failing = store.transactions.run(async ({ apply }) => {
    seen = leaseOf(await apply(claimOf('a'))).fence
    throw new Error('no')
  }, TRANSACTION)
  await assert.rejects(failing)
  assert.ok((await claimIn(store, 'b')).fence > seen)
})

test('statements of other requests never join an open transaction, and uncommitted writes are invisible', async (t) => {
  const store = await storeWithOrders(t)
  const order: string[] = []
  const opened = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const first = store.transactions.run(async ({ tx }) => {
    await add(tx, 'first')
    opened.resolve()
    await goOn.promise
    order.push('first')
    throw new Error('rolled back')
  }, TRANSACTION)
  await opened.promise
  const second = store.transactions.run(async ({ tx }) => {
    order.push('second')
    const seen = await tx.query('SELECT name FROM orders')
    assert.ok(!JSON.stringify(seen).includes('first'))
    await add(tx, 'second')
  }, TRANSACTION)
  const claimed = applyTo(store, claimOf('meanwhile'), CALL).then(() => order.push('claim'))
  const written = store.sql.query(`INSERT INTO orders (name) VALUES ('beside')`)
  // Reads do not wait for the writer.
  assert.deepEqual(await orders(store), [])
  await store.claims.read([claimOf('meanwhile').id], CALL)
  await store.clock.now(CALL)
  goOn.resolve()
  await assert.rejects(first, /rolled back/)
  await Promise.all([second, claimed, written])
  assert.deepEqual(order.toSorted(), ['claim', 'first', 'second'])
  assert.equal(order[0], 'first')
  assert.deepEqual(await orders(store), ['beside', 'second'])
})

test('a transaction that holds the writer too long is rolled back, and its later statements never run', async (t) => {
  const store = await storeWithOrders(t, HOLD_MS)
  const tooLong = (error: unknown) => isOnceError(error, 'transaction_too_long')
  const late = Promise.withResolvers<unknown>()
  const over = Promise.withResolvers<void>()
  const running = store.transactions.run(async ({ tx, apply, savepoint }) => {
    // On a machine that stalls the time may be over already, which changes nothing for what comes later.
    await add(tx, 'early').catch(() => undefined)
    await over.promise
    const tries = [
      add(tx, 'late'),
      apply(claimOf('late')),
      savepoint(async () => undefined),
      tx.inSavepoint(async () => undefined),
    ]
    late.resolve(Promise.allSettled(tries))
    await Promise.all(tries)
  }, TRANSACTION)
  const waiting = claimIn(store, 'waiting')
  await assert.rejects(running, tooLong)
  over.resolve()
  await waiting
  // The next transaction uses the same connection: nothing of the old one may reach it.
  const tries = await store.transactions.run(async ({ tx }) => {
    const refused = (await late.promise) as PromiseSettledResult<unknown>[]
    await add(tx, 'next')
    return refused
  }, TRANSACTION)
  for (const tried of tries) assert.ok(tried.status === 'rejected' && tooLong(tried.reason))
  assert.deepEqual(await orders(store), ['next'])
})

test('a transaction that never ends by itself lets the store stop', async (t) => {
  const store = await storeWithOrders(t, HOLD_MS)
  const running = store.transactions.run(() => new Promise(() => undefined), TRANSACTION)
  await Promise.all([assert.rejects(running, (error) => isOnceError(error, 'transaction_too_long')), store.stop()])
})

test('tx and session are refused after the end', async (t) => {
  const store = await storeWithOrders(t)
  const leaked = await store.transactions.run(async (session) => session, TRANSACTION)
  const over = (error: unknown) => isOnceError(error, 'transaction_aborted')
  await assert.rejects(add(leaked.tx, 'leaked'), over)
  await assert.rejects(leaked.apply(claimOf('leaked')), over)
  await assert.rejects(
    leaked.savepoint(async () => undefined),
    over,
  )
  assert.deepEqual(await orders(store), [])
})

test('a savepoint undoes its own writes only', async (t) => {
  const store = await storeWithOrders(t)
  await store.transactions.run(async ({ tx, savepoint }) => {
    await add(tx, 'a')
    await assert.rejects(
      tx.inSavepoint(() => add(tx, 'a')),
      /UNIQUE/,
    )
    await savepoint(async () => {
      await add(tx, 'b')
      await assert.rejects(
        tx.inSavepoint(async () => {
          await add(tx, 'c')
          throw new Error('undo c')
        }),
        /undo c/,
      )
      await tx.inSavepoint(() => add(tx, 'd'))
    })
  }, TRANSACTION)
  assert.deepEqual(await orders(store), ['a', 'b', 'd'])
})

test('savepoints that overlap wait for each other, and statements beside them are not undone with them', async (t) => {
  const store = await storeWithOrders(t)
  await store.transactions.run(async ({ tx }) => {
    const one = async (name: string, fails: boolean) => {
      await add(tx, name)
      await sleep(5)
      await add(tx, `${name}!`)
      if (fails) throw new Error(name)
    }
    await Promise.allSettled([
      tx.inSavepoint(() => one('bad', true)),
      tx.inSavepoint(() => one('good', false)),
      sleep(2).then(() => add(tx, 'beside')),
      tx.inSavepoint(() => one('worse', true)),
    ])
  }, TRANSACTION)
  assert.deepEqual(await orders(store), ['beside', 'good', 'good!'])
})

test('what an effect forgot to await cannot write after its savepoint', async (t) => {
  const store = await storeWithOrders(t)
  let dangling: Promise<unknown> = Promise.resolve()
  const over = Promise.withResolvers<void>()
  await store.transactions.run(async ({ tx, savepoint }) => {
    await savepoint(async () => {
      dangling = over.promise.then(() => add(tx, 'dangling'))
      dangling.catch(() => undefined)
    })
    over.resolve()
    await assert.rejects(dangling)
  }, TRANSACTION)
  await assert.rejects(dangling, (error) => isOnceError(error, 'transaction_aborted'))
  assert.deepEqual(await orders(store), [])
})

test('errors of the effect are its own, and a rollback by SQLite itself ends the transaction', async (t) => {
  const store = await storeWithOrders(t)
  await store.sql.query(`INSERT INTO orders (name) VALUES ('taken')`)
  await store.transactions.run(async ({ tx }) => {
    await assert.rejects(add(tx, 'taken'), (error) => !isOnceError(error) && /UNIQUE/.test(String(error)))
    await add(tx, 'after a violation')
  }, TRANSACTION)
  const aborted = (error: unknown) => isOnceError(error, 'transaction_aborted')
  const swallowing = store.transactions.run(async ({ tx }) => {
    await tx.query(`INSERT OR ROLLBACK INTO orders (name) VALUES ('taken')`).catch(() => undefined)
    await assert.rejects(add(tx, 'outside'), aborted)
  }, TRANSACTION)
  await assert.rejects(swallowing, aborted)
  assert.deepEqual(await orders(store), ['after a violation', 'taken'])
})

test('a violation that was put off until the commit rolls back and passes unchanged', async (t) => {
  const store = await storeWithOrders(t)
  await store.sql.query('CREATE TABLE lines (name TEXT REFERENCES orders (name) DEFERRABLE INITIALLY DEFERRED)')
  const running = store.transactions.run(async ({ tx }) => {
    await add(tx, 'a')
    await tx.query(`INSERT INTO lines VALUES ('unseen')`)
  }, TRANSACTION)
  await assert.rejects(running, (error) => !isOnceError(error) && /FOREIGN KEY/.test(String(error)))
  assert.deepEqual(await orders(store), [])
})

test('a duplicate in the same process is found at once if requested', async (t) => {
  const store = await storeWithOrders(t)
  const { id } = claimOf('a')
  const claimed = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const first = store.transactions.run(async ({ apply }) => {
    await apply(claimOf('a'))
    claimed.resolve()
    await goOn.promise
  }, TRANSACTION)
  await claimed.promise
  const twin = store.transactions.run(async () => undefined, { ...TRANSACTION, refuseTwinOf: id })
  await assert.rejects(twin, (error) => isOnceError(error, 'store_busy'))
  goOn.resolve()
  await first
})

test('waiting for the writer ends at the bound, with nothing applied', async (t) => {
  const store = await storeWithOrders(t)
  const goOn = Promise.withResolvers<void>()
  const first = store.transactions.run(() => goOn.promise, TRANSACTION)
  const second = store.transactions.run(async () => assert.fail('it must not run'), { ...TRANSACTION, lockMs: 30 })
  await assert.rejects(second, (error) => isOnceError(error, 'store_busy') && error.applied === 'no')
  const late = applyTo(store, claimOf('late'), { timeoutMs: 20 })
  await assert.rejects(late, (error) => isOnceError(error, 'store_unavailable') && error.applied === 'no')
  goOn.resolve()
  await first
  assert.deepEqual((await store.claims.read([claimOf('late').id], CALL)).records, [null])
})

test('an effect runs in the asynchronous context of its own caller', async (t) => {
  const store = await storeWithOrders(t)
  const context = new AsyncLocalStorage<string>()
  const contexts = ['a', 'b', 'c'].map((name) =>
    context.run(name, () =>
      store.transactions.run(async ({ tx }) => {
        await tx.query('SELECT 1')
        return context.getStore()
      }, TRANSACTION),
    ),
  )
  assert.deepEqual(await Promise.all(contexts), ['a', 'b', 'c'])
})

test('a stream of group commits does not starve a transaction, nor many transactions the event loop', async (t) => {
  const store = await storeWithOrders(t)
  let flowing = true
  let ticks = 0
  const timer = setInterval(() => ticks++, 1)
  const stream = (async () => {
    for (let n = 0; flowing; n++) await store.claims.apply(claimOf(`stream ${n}`), CALL)
  })()
  const names = Array.from({ length: 100 }, (_, n) => `t${n}`)
  await Promise.all(names.map((name) => store.transactions.run(({ tx }) => add(tx, name), TRANSACTION)))
  flowing = false
  await stream
  clearInterval(timer)
  assert.equal((await orders(store)).length, names.length)
  assert.ok(ticks > 5, `only ${ticks} timers fired`)
})
