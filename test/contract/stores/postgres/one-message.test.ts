import assert from 'node:assert/strict'
import { createLedger } from 'onceonly'
import type { Pool } from 'pg'
import { isOnceError } from '../../../../src/ledger/core/errors.ts'
import type { ClaimRequest } from '../../../../src/ledger/core/request.ts'
import type { Session } from '../../../../src/ledger/store/port.ts'
import type { PostgresStore, PostgresTx } from '../../../../src/ledger/stores/postgres/index.ts'
import { order, ordersIn, shop } from '../../../support/stores/postgres/shop.ts'
import {
  CALL,
  claimOf,
  freshPool,
  freshSchema,
  leaseOf,
  openStore,
  settleOf,
  TRANSACTION,
  testPostgres,
} from '../../../support/stores/postgres/store.ts'

/** The claim travels with BEGIN, and the settle with COMMIT: what may go wrong between the parts of one message. */

type Work = (session: Session<PostgresTx>) => Promise<unknown>

/** As the ledger does, for a claim that is granted. */
function transact(store: PostgresStore, claim: ClaimRequest, work: Work, data = '"done"'): Promise<void> {
  return store.transactions.run(
    async (session) => {
      const lease = leaseOf(await session.apply(claim))
      await session.savepoint(() => work(session))
      const to = { state: 'succeeded', outcome: { kept: 'response', data } } as const
      const settled = await session.settleLast?.(settleOf(lease, to))
      assert.equal(settled?.decision.kind, 'applied')
    },
    { ...TRANSACTION, claim },
  )
}

testPostgres('an effect that removed the record of its own key is not committed without its outcome', async (t) => {
  const store = await shop(t)
  const running = transact(store, claimOf('a'), async (session) => {
    await order(session, 'a')
    await session.tx.query('DELETE FROM onceonly_records')
  })
  await assert.rejects(running, (error) => isOnceError(error, 'transaction_aborted') && error.applied === 'no')
  assert.deepEqual(await ordersIn(store), [])
  await transact(store, claimOf('a'), (session) => order(session, 'again'))
  assert.deepEqual(await ordersIn(store), ['again'])
})

testPostgres('any text may stand in a claim and in an outcome, also where a backslash escapes', async (t) => {
  const store = await shop(t, `${freshSchema()}$1`, { options: '-c standard_conforming_strings=off' })
  const odd = [`it's`, 'C:\\new\\', `\\'; DROP TABLE orders; --`, '$1 $2', `E'x'`, '💳 ü', '', '?', '%s', `"quoted"`]
  for (const text of odd) {
    const claim = claimOf(`key ${text}`, { fingerprints: [`v1:1:${text}`] })
    await transact(store, claim, (session) => order(session, text), JSON.stringify(text))
    const { records } = await store.claims.read([claim.id], CALL)
    const record = records[0]
    assert.ok(record?.state === 'succeeded')
    assert.deepEqual(
      [record.identity, record.fingerprint, record.outcome.data],
      [claim.identity, `v1:1:${text}`, JSON.stringify(text)],
    )
  }
  assert.equal((await ordersIn(store)).length, odd.length)
  const nul = claimOf('a \0 b')
  await assert.rejects(
    transact(store, nul, () => assert.fail('the effect ran')),
    (error) => isOnceError(error, 'row_refused'),
  )
})

testPostgres('a part after the effect is undone alone, and a failed statement undoes the effect', async (t) => {
  const store = await shop(t)
  const claim = claimOf('a')
  await store.transactions.run(
    async (session) => {
      const lease = leaseOf(await session.apply(claim))
      await session.savepoint(() => order(session, 'first'))
      await session.savepoint(() => order(session, 'second'))
      const undone = session.savepoint(async () => {
        await order(session, 'third')
        throw new Error('undo')
      })
      await assert.rejects(undone, /undo/)
      await session.settleLast?.(settleOf(lease))
    },
    { ...TRANSACTION, claim },
  )
  assert.deepEqual(await ordersIn(store), ['first', 'second'])
  const other = claimOf('b')
  await store.transactions.run(
    async (session) => {
      const lease = leaseOf(await session.apply(other))
      const failed = session.savepoint(async () => {
        await order(session, 'fourth')
        await order(session, 'first').catch(() => undefined)
      })
      await assert.rejects(failed, (error) => isOnceError(error, 'transaction_aborted'))
      // Only that part is lost.
      await order(session, 'fifth')
      await session.settleLast?.(settleOf(lease))
    },
    { ...TRANSACTION, claim: other },
  )
  assert.deepEqual(await ordersIn(store), ['fifth', 'first', 'second'])
})

testPostgres('a part around others is undone as a whole, and a settle inside of one is not the last', async (t) => {
  const store = await shop(t)
  const claim = claimOf('a')
  await store.transactions.run(
    async (session) => {
      const lease = leaseOf(await session.apply(claim))
      const undone = session.savepoint(async () => {
        await order(session, 'outer')
        await session.savepoint(() => order(session, 'inner'))
        throw new Error('undo')
      })
      await assert.rejects(undone, /undo/)
      await session.savepoint(async () => await session.settleLast?.(settleOf(lease)))
      await order(session, 'after')
    },
    { ...TRANSACTION, claim },
  )
  assert.deepEqual(await ordersIn(store), ['after'])
  const { records } = await store.claims.read([claim.id], CALL)
  assert.equal(records[0]?.state, 'succeeded')
})

testPostgres('a statement between the claim and the effect stays when the effect is undone', async (t) => {
  const store = await shop(t)
  const claim = claimOf('a')
  await store.transactions.run(
    async (session) => {
      const lease = leaseOf(await session.apply(claim))
      await order(session, 'before')
      const undone = session.savepoint(async () => {
        await order(session, 'inside')
        throw new Error('undo')
      })
      await assert.rejects(undone, /undo/)
      await session.settleLast?.(settleOf(lease))
    },
    { ...TRANSACTION, claim },
  )
  assert.deepEqual(await ordersIn(store), ['before'])
})

testPostgres('a constraint that is checked at COMMIT is the error of the effect', async (t) => {
  const store = await shop(t)
  await store.sql.query('CREATE TABLE lines (name text REFERENCES orders (name) DEFERRABLE INITIALLY DEFERRED)')
  const running = transact(store, claimOf('a'), (session) => session.tx.query('INSERT INTO lines VALUES (?)', ['none']))
  await assert.rejects(running, (error) => error instanceof Error && 'code' in error && error.code === '23503')
  const { records } = await store.claims.read([claimOf('a').id], CALL)
  assert.equal(records[0], null)
})

testPostgres('after its last settle a transaction takes no further statement', async (t) => {
  const store = await shop(t)
  const claim = claimOf('a')
  await store.transactions.run(
    async (session) => {
      const lease = leaseOf(await session.apply(claim))
      await session.settleLast?.(settleOf(lease))
      await assert.rejects(order(session, 'late'), (error) => isOnceError(error, 'transaction_aborted'))
    },
    { ...TRANSACTION, claim },
  )
  assert.deepEqual(await ordersIn(store), [])
})

/** Every text that is sent on a connection of the pool. */
function sentOn(pool: Pool): string[] {
  const sent: string[] = []
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown
    const noted = (...args: unknown[]) => {
      const [given] = args
      sent.push(typeof given === 'string' ? given : (given as { text: string }).text)
      return query(...args)
    }
    Object.assign(client, { query: noted })
  })
  return sent
}

testPostgres('a command in its own transaction takes two messages beside those of its effect', async (t) => {
  const pool = await freshPool(t, { max: 6 })
  const sent = sentOn(pool)
  const [store, other] = [await openStore(t, {}, pool), await openStore(t, {}, pool)]
  await store.sql.query('CREATE TABLE orders (name text PRIMARY KEY)')
  // Two stores on one pool do not lose their statements to each other.
  for (const [n, each] of [store, other, store, other].entries()) {
    await each.clock.now(CALL)
    sent.length = 0
    await transact(each, claimOf(`key ${n}`), ({ tx }) => tx.query('SELECT 1'))
    assert.equal(sent.length, 3, sent.join('\n'))
  }
  const twin = claimOf('twin')
  const call = { ...TRANSACTION, claim: twin, refuseTwinOf: twin.id }
  await store.transactions.run(async () => {
    await assert.rejects(
      store.transactions.run(async () => assert.fail('the twin ran'), call),
      (error) => isOnceError(error, 'store_busy') && error.details['twin'] === true,
    )
  }, call)
})

testPostgres('a connection that forgets its prepared statements costs messages, and nothing else', async (t) => {
  const pool = await freshPool(t, { max: 3 })
  const store = await openStore(t, {}, pool)
  for (const key of ['a', 'b', 'c']) {
    await transact(store, claimOf(key), ({ tx }) => tx.query('DEALLOCATE ALL'))
    await transact(store, claimOf(`${key} again`), ({ tx }) => tx.query('SELECT 1'))
    const client = await pool.connect()
    await client.query('DEALLOCATE ALL')
    client.release()
  }
  assert.equal((await store.queries.count({}, CALL)).succeeded, 6)
})

testPostgres(
  'an effect that makes the server forget what was prepared is settled apart, by its next try',
  async (t) => {
    const pool = await freshPool(t, { max: 3 })
    const store = await openStore(t, { schema: freshSchema() }, pool)
    const ledger = createLedger({ store, background: false })
    t.after(() => ledger.stop())
    const forgets = `forget_${freshSchema()}`
    await pool.query(
      `create function ${forgets}() returns void language plpgsql as $$ begin execute 'deallocate all'; end $$`,
    )
    const op = ledger.operation<null>({ name: 'op', effect: 'transaction' })
    const who = (key: string) => ({ tenant: 't', caller: 'c', key })
    await op.run(who('prepared'), null, async () => 0)
    let runs = 0
    const forgetful = async ({ tx }: { readonly tx: { query(text: string): Promise<unknown> } }) => {
      runs++
      await tx.query(`select ${forgets}()`)
      return runs
    }
    assert.equal(await op.run(who('forgotten'), null, forgetful), 2, 'the first try was rolled back')
    assert.equal(await op.run(who('forgotten'), null, forgetful), 2)
    assert.equal(runs, 2)
  },
)
