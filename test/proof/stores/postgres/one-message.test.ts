import assert from 'node:assert/strict'
import { isOnceError } from '../../../../src/ledger/core/errors.ts'
import { limits } from '../../../../src/ledger/core/limits.ts'
import { shop } from '../../../support/stores/postgres/shop.ts'
import { claimOf, TRANSACTION, testPostgres } from '../../../support/stores/postgres/store.ts'

testPostgres('a claim that travels with BEGIN and waits too long for its twin says so', async (t) => {
  const store = await shop(t)
  const claim = claimOf('a')
  const begun = Promise.withResolvers<void>()
  const end = Promise.withResolvers<void>()
  const first = store.transactions.run(
    async (session) => {
      await session.apply(claim)
      begun.resolve()
      await end.promise
    },
    { ...TRANSACTION, claim },
  )
  await begun.promise
  const again = claimOf('a')
  const patience = { ...TRANSACTION, lockMs: limits.transactionLockMs }
  const second = store.transactions.run((session) => session.apply(again), { ...patience, claim: again })
  await assert.rejects(second, (error) => {
    assert.ok(isOnceError(error, 'store_busy'), String(error))
    assert.deepEqual([error.details['twin'], error.applied], [true, 'no'])
    return true
  })
  end.resolve()
  await first
})
