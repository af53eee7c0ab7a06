import assert from 'node:assert/strict'
import { isOnceError } from 'onceonly'
import { openStore, TRANSACTION, testPostgres } from '../../../support/stores/postgres/store.ts'

testPostgres('a nested transaction ends no savepoint that was opened around it', async (t) => {
  const store = await openStore(t)
  const left = await store.transactions.run(async ({ tx }) => {
    await tx.query('CREATE TEMPORARY TABLE orders (name text) ON COMMIT DROP')
    await tx.query('SAVEPOINT around')
    await tx.query('BEGIN')
    await tx.query('INSERT INTO orders VALUES (?)', ['inside'])
    for (const statement of ['RELEASE around', 'ROLLBACK TO around']) {
      await assert.rejects(tx.query(statement), (error) => isOnceError(error, 'bad_option'), statement)
    }
    await tx.query('COMMIT')
    await tx.query('RELEASE around')
    return tx.query<{ name: string }>('SELECT name FROM orders')
  }, TRANSACTION)
  assert.deepEqual(left, [{ name: 'inside' }])
})

testPostgres(
  'a commit after a failed statement rolls the nested transaction back, and the outer one continues',
  async (t) => {
    const store = await openStore(t)
    const left = await store.transactions.run(async ({ tx }) => {
      await tx.query('CREATE TEMPORARY TABLE orders (name text PRIMARY KEY) ON COMMIT DROP')
      const { client } = tx
      await client.query({ text: 'BEGIN' })
      await tx.query('INSERT INTO orders VALUES (?)', ['undone'])
      await assert.rejects(tx.query('INSERT INTO orders VALUES (?)', ['undone']), /duplicate key/)
      // As the server answers it.
      assert.equal((await client.query({ text: 'COMMIT' })).command, 'ROLLBACK')
      await tx.query('INSERT INTO orders VALUES (?)', ['after'])
      return tx.query<{ name: string }>('SELECT name FROM orders')
    }, TRANSACTION)
    assert.deepEqual(left, [{ name: 'after' }])
  },
)
