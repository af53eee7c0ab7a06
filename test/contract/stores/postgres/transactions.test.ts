import assert from 'node:assert/strict'
import type { LedgerErrorCode } from '../../../../src/ledger/core/errors.ts'
import { isOnceError } from '../../../../src/ledger/core/errors.ts'
import type { Session } from '../../../../src/ledger/store/port.ts'
import type { PostgresStore, PostgresTx } from '../../../../src/ledger/stores/postgres/index.ts'
import { order, ordersIn, shop } from '../../../support/stores/postgres/shop.ts'
import {
  CALL,
  claimOf,
  DONE,
  freshSchema,
  kindOf,
  leaseOf,
  openStore,
  settleOf,
  sleep,
  TRANSACTION,
  testPostgres,
} from '../../../support/stores/postgres/store.ts'

function rejectsWith(work: Promise<unknown>, code: LedgerErrorCode, applied = 'no'): Promise<void> {
  return assert.rejects(work, (error) => isOnceError(error, code) && error.applied === applied)
}

const FOR_EVER = { timeoutMs: 3_600_000, lockMs: 3_600_000 }

async function stateOf(store: PostgresStore, key: string): Promise<string | undefined> {
  return (await store.claims.read([claimOf(key).id], CALL)).records[0]?.state
}

/** Claims, works and settles, as the ledger does. */
async function transact(
  store: PostgresStore,
  key: string,
  work: (session: Session<PostgresTx>) => Promise<unknown>,
  call: Partial<typeof TRANSACTION> = {},
): Promise<string> {
  const claim = claimOf(key)
  return await store.transactions.run(
    async (session) => {
      const claimed = await session.apply(claim)
      if (kindOf(claimed) !== 'first_attempt') return kindOf(claimed)
      await session.savepoint(() => work(session))
      await session.settleLast?.(settleOf(leaseOf(claimed)))
      return 'executed'
    },
    { ...TRANSACTION, ...call, claim },
  )
}

testPostgres('claim, business write and outcome commit together, and are replayed', async (t) => {
  const store = await shop(t)
  assert.equal(await transact(store, 'a', (session) => order(session, 'a')), 'executed')
  assert.equal(await transact(store, 'a', () => assert.fail('the effect ran again')), 'replay_success')
  assert.deepEqual(await ordersIn(store), ['a'])
  assert.equal(await stateOf(store, 'a'), 'succeeded')
})

testPostgres('what the work throws comes out unchanged, and nothing of it stays', async (t) => {
  const store = await shop(t)
  const own = new Error('out of stock')
  const failing = transact(store, 'a', async (session) => {
    await order(session, 'a')
    throw own
  })
  await assert.rejects(failing, (error) => error === own)
  const twice = transact(store, 'b', async (session) => {
    await order(session, 'b')
    await order(session, 'b')
  })
  // An undeclared violation reaches the user with the server's own code.
  await assert.rejects(twice, (error: Error & { code?: string }) => error.code === '23505')
  assert.deepEqual(await ordersIn(store), [])
  assert.equal(await stateOf(store, 'a'), undefined)
})

testPostgres('a savepoint undoes its own writes, and the transaction continues', async (t) => {
  const store = await shop(t)
  await store.transactions.run(async (session) => {
    await order(session, 'kept')
    const failing = session.savepoint(async () => {
      await order(session, 'undone')
      await assert.rejects(session.tx.inSavepoint(() => order(session, 'kept')))
      await order(session, 'undone too')
      throw new Error('changed my mind')
    })
    await assert.rejects(failing, /changed my mind/)
    await order(session, 'after')
  }, TRANSACTION)
  assert.deepEqual(await ordersIn(store), ['after', 'kept'])
})

testPostgres('savepoints that overlap wait for each other, and nothing beside them is undone with them', async (t) => {
  const store = await shop(t)
  await store.transactions.run(async (session) => {
    const one = async (name: string, fails: boolean) => {
      await order(session, name)
      // Longer than the other begins; with any other interleaving the same rows stay.
      await sleep(5)
      await order(session, `${name}!`)
      if (fails) throw new Error(name)
    }
    const ends = await Promise.allSettled([
      session.tx.inSavepoint(() => one('bad', true)),
      session.savepoint(() => one('good', false)),
      sleep(2).then(() => order(session, 'beside')),
      session.tx.inSavepoint(() => one('worse', true)),
    ])
    assert.deepEqual(
      ends.map(({ status }) => status),
      ['rejected', 'fulfilled', 'fulfilled', 'rejected'],
    )
  }, TRANSACTION)
  assert.deepEqual(await ordersIn(store), ['beside', 'good', 'good!'])
})

testPostgres('what a part of the work forgot to await cannot write after it', async (t) => {
  const store = await shop(t)
  let dangling: Promise<unknown> = Promise.resolve()
  const over = Promise.withResolvers<void>()
  await store.transactions.run(async (session) => {
    const failing = session.savepoint(async () => {
      dangling = over.promise.then(() => order(session, 'dangling'))
      dangling.catch(() => undefined)
      throw new Error('it failed')
    })
    await assert.rejects(failing, /it failed/)
    over.resolve()
    await assert.rejects(dangling)
    await order(session, 'after')
  }, TRANSACTION)
  await rejectsWith(
    dangling.then(() => undefined),
    'transaction_aborted',
  )
  assert.deepEqual(await ordersIn(store), ['after'])
})

testPostgres('an SQL error that the effect swallowed is never a success', async (t) => {
  const store = await shop(t)
  await transact(store, 'first', (session) => order(session, 'taken'))
  const swallow = async (session: Session<PostgresTx>) => {
    await order(session, 'lost')
    await order(session, 'taken').catch(() => undefined)
  }
  // Under the savepoint of the ledger; in a plain transaction; and by a statement that was not awaited.
  await rejectsWith(transact(store, 'a', swallow), 'transaction_aborted')
  await rejectsWith(store.transactions.run(swallow, TRANSACTION), 'transaction_aborted')
  const careless = store.transactions.run(async (session) => {
    await order(session, 'lost')
    void order(session, 'taken').catch(() => undefined)
  }, TRANSACTION)
  await rejectsWith(careless, 'transaction_aborted')
  // Continuing after it only repeats that the transaction is aborted.
  const going = store.transactions.run(async (session) => {
    await swallow(session)
    await order(session, 'more')
  }, TRANSACTION)
  await rejectsWith(going, 'transaction_aborted')
  const settling = store.transactions.run(async (session) => {
    const lease = leaseOf(await session.apply(claimOf('a')))
    await swallow(session)
    await session.apply(settleOf(lease))
  }, TRANSACTION)
  await rejectsWith(settling, 'transaction_aborted')
  assert.deepEqual(await ordersIn(store), ['taken'])
  assert.equal(await stateOf(store, 'a'), undefined)
})

testPostgres('a duplicate waits for the row, then replays; after a rollback it runs itself', async (t) => {
  const schema = freshSchema()
  const [store, other] = [await shop(t, schema), await openStore(t, { schema })]
  for (const fails of [false, true]) {
    const key = `fails ${fails}`
    const entered = Promise.withResolvers<void>()
    const first = transact(store, key, async (session) => {
      await order(session, `${key} first`)
      entered.resolve()
      // Gives the duplicate time to wait; one that comes later gets the same answer.
      await sleep(200)
      if (fails) throw new Error('no')
    }).catch(() => 'failed')
    await entered.promise
    const second = transact(other, key, (session) => order(session, `${key} second`))
    assert.deepEqual(
      await Promise.all([first, second]),
      fails ? ['failed', 'executed'] : ['executed', 'replay_success'],
    )
  }
  assert.deepEqual(await ordersIn(store), ['fails false first', 'fails true second'])
})

testPostgres('a duplicate that runs too long is reported busy, at once when it is not to be waited for', async (t) => {
  const schema = freshSchema()
  const [store, other] = [await shop(t, schema), await openStore(t, { schema })]
  const { id } = claimOf('a')
  await transact(
    store,
    'a',
    async () => {
      await rejectsWith(
        transact(other, 'a', async () => undefined, { lockMs: 50 }),
        'store_busy',
      )
      // A wait for the duplicate would take longer than a test may.
      const refused = transact(other, 'a', async () => undefined, { ...FOR_EVER, refuseTwinOf: id as never })
      await assert.rejects(refused, (error) => isOnceError(error, 'store_busy') && error.details['twin'] === true)
    },
    { ...FOR_EVER, refuseTwinOf: id as never },
  )
  assert.equal(await transact(other, 'a', async () => undefined, { refuseTwinOf: id as never }), 'replay_success')
})

testPostgres('a deadlock means that nothing happened, however the error was wrapped', async (t) => {
  const schema = freshSchema()
  const [store, other] = [await shop(t, schema), await openStore(t, { schema })]
  await store.transactions.run(async (session) => {
    await order(session, 'a')
    await order(session, 'b')
  }, TRANSACTION)
  const bothHold = Promise.withResolvers<void>()
  let holding = 0
  const cross = (one: PostgresStore, first: string, second: string) =>
    one.transactions.run(async ({ tx }) => {
      const lock = (name: string) => tx.query('SELECT 1 FROM orders WHERE name = ? FOR UPDATE', [name])
      await lock(first)
      if (++holding === 2) bothHold.resolve()
      await bothHold.promise
      await lock(second).catch((error: unknown) => {
        throw new Error('the repository failed', { cause: error })
      })
    }, TRANSACTION)
  const ends = await Promise.allSettled([cross(store, 'a', 'b'), cross(other, 'b', 'a')])
  const failed = ends.filter((end) => end.status === 'rejected')
  assert.equal(failed.length, 1)
  assert.ok(isOnceError(failed[0]?.reason, 'store_busy') && failed[0].reason.applied === 'no')
})

testPostgres('a transaction ends at its deadline, whether it computes or waits for the server', async (t) => {
  const store = await shop(t)
  // Short, because the test waits for it twice, and longer than a busy machine takes to begin.
  const late = { timeoutMs: 2_000 }
  const over = Promise.withResolvers<void>()
  let handle: PostgresTx | null = null
  const computing = transact(
    store,
    'a',
    async (session) => {
      handle = session.tx
      await order(session, 'a')
      await over.promise
    },
    late,
  )
  await rejectsWith(computing, 'transaction_too_long')
  over.resolve()
  const waiting = transact(store, 'a', ({ tx }) => tx.query('SELECT pg_sleep(30)'), late)
  await rejectsWith(waiting, 'store_unavailable')
  assert.deepEqual(await ordersIn(store), [])
  assert.ok(handle !== null)
  await assert.rejects((handle as PostgresTx).query('SELECT 1'), (error) => isOnceError(error, 'transaction_too_long'))
})

testPostgres('a handle cannot be used after its transaction', async (t) => {
  const store = await shop(t)
  const tx = await store.transactions.run(async (session) => session.tx, TRANSACTION)
  await rejectsWith(tx.query('INSERT INTO orders VALUES (?)', ['late']), 'transaction_aborted')
  await rejectsWith(
    tx.inSavepoint(async () => 1),
    'transaction_aborted',
  )
  assert.deepEqual(await ordersIn(store), [])
})

testPostgres('a session decides whatever a batch decides', async (t) => {
  const store = await shop(t)
  const { id, identity, claimId } = claimOf('value')
  const unique = { kind: 'unique', id, identity, claimId, owner: 'me' } as const
  const decided = await store.transactions.run(async (session) => {
    const lease = leaseOf(await session.apply(claimOf('a', { start: false })))
    const { fence } = lease
    return [
      await session.apply({ kind: 'start', id: lease.id, claimId: lease.claimId, fence, leaseMs: 1_000 }),
      await session.apply({
        kind: 'attach',
        id: lease.id,
        claimId: lease.claimId,
        fence,
        pointer: { type: 'x', id: '1' },
      }),
      await session.apply(settleOf(lease, { state: 'unknown', reason: null })),
      await session.apply(settleOf(lease, DONE)),
      await session.apply(unique),
      await session.apply({ ...unique, owner: 'you' }),
    ]
  }, TRANSACTION)
  const kinds = ['applied', 'applied', 'applied', 'applied', 'unique_claimed', 'unique_taken']
  assert.deepEqual(decided.map(kindOf), kinds)
  assert.deepEqual((await store.queries.unknowns({ limit: 10, cursor: null }, CALL)).rows, [])
  const refused = store.transactions.run((session) => session.apply(claimOf('x', { claimId: 'nul \0' })), TRANSACTION)
  await rejectsWith(refused, 'row_refused')
})

testPostgres('statements that the work sends at once run one after the other', async (t) => {
  const store = await shop(t)
  await store.transactions.run(async (session) => {
    await Promise.all(Array.from({ length: 20 }, (_, index) => order(session, `n${index}`)))
  }, TRANSACTION)
  assert.equal((await ordersIn(store)).length, 20)
})
