import assert from 'node:assert/strict'
import { isOnceError } from 'onceonly'
import { claimOf, settleOf } from '../../../../src/ledger/store/test-requests.ts'
import { applyTo } from '../../../../src/testing/apply-all.ts'
import { testMariadb } from '../../../support/stores/mariadb/stage.ts'

const CALL = { timeoutMs: 10_000, lockMs: 1_000, refuseTwinOf: null }

for (const option of ['rowsAsArray', 'nestTables', 'metaAsArray', 'namedPlaceholders', 'bigNumberStrings']) {
  testMariadb(`the store works on a pool with ${option}`, async ({ database, open }) => {
    const store = open(database.pool({ [option]: true }))
    const { decision } = await store.claims.apply(claimOf('a'), CALL)
    assert.ok('lease' in decision)
    await store.claims.apply(settleOf(decision.lease), CALL)
    assert.equal((await store.claims.apply(claimOf('a'), CALL)).decision.kind, 'replay_success')
    const rows = await store.transactions.run(({ tx }) => tx.query('SELECT ? AS word', ['x']), CALL)
    assert.deepEqual(rows, [{ word: 'x' }])
  })
}

const refused = [
  { what: 'no database', settings: { database: undefined }, says: /selects no database\. Pass `database`/ },
  { what: 'autocommit off', settings: { initSql: 'SET autocommit = 0' }, says: /`autocommit` is off\. Leave it on/ },
  { what: 'a narrow character set', settings: { initSql: 'SET NAMES utf8mb3' }, says: /`utf8mb3`.* Use `utf8mb4`/ },
]

for (const { what, settings, says } of refused) {
  testMariadb(`a pool with ${what} is refused in a sentence`, async ({ database, open }) => {
    const store = open(database.pool(settings))
    for (const call of [
      async () => store.claims.apply(claimOf('a'), CALL),
      () => store.transactions.run(({ apply }) => apply(claimOf('a')), CALL),
    ]) {
      await assert.rejects(call, (error) => {
        assert.ok(isOnceError(error, 'bad_option'))
        assert.match(error.message, says)
        return true
      })
    }
  })
}

testMariadb('three connections and one for each transaction are enough', async ({ database, open }) => {
  const store = open(database.pool({ connectionLimit: 4 }))
  const keys = Array.from({ length: 50 }, (_, index) => `k${index}`)
  await store.transactions.run(async ({ apply }) => {
    await apply(claimOf('held'))
    await Promise.all(keys.map((key) => applyTo(store, claimOf(key), CALL)))
    const { records } = await store.claims.read([claimOf('k0').id], CALL)
    assert.equal(records[0]?.state, 'in_progress')
  }, CALL)
  assert.equal((await store.queries.count({}, CALL)).in_progress, keys.length + 1)
})
