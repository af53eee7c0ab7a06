import assert from 'node:assert/strict'
import { onEveryPlace, onPlace, sqlOf } from '../../support/place.ts'

/** Texts and values of statements reach the server as they were written. */

const TRANSACTION = { timeoutMs: 20_000, lockMs: 10_000, refuseTwinOf: null }

onPlace(
  'postgres',
  'question marks in strings and comments are no places, and a doubled one is an operator',
  async (place) => {
    const sql = sqlOf(place.store)
    const text = `SELECT ?::text AS value, $tag$ ? $tag$ AS dollar, E'it\\'s ?' AS escaped, '?' AS plain, /* ? /* ? */ ? */
    '{"a": 1}'::jsonb ?? 'a' AS has, '{"a": 1}'::jsonb ??| ARRAY[?] AS any -- ?`
    const expected = [{ value: 'x', dollar: ' ? ', escaped: "it's ?", plain: '?', has: true, any: false }]
    assert.deepEqual(await sql.query(text, ['x', 'b']), expected)
    const inside = place.store.transactions.run(({ tx }) => tx.query(text, ['x', 'b']), TRANSACTION)
    assert.deepEqual(await inside, expected)
  },
)

onEveryPlace('whole numbers beyond those of doubles come back as they were written', async (place) => {
  const sql = sqlOf(place.store)
  const values = [0n, 5n, -(2n ** 53n), 2n ** 53n + 1n, -(2n ** 63n), 2n ** 63n - 1n]
  await sql.query('create table numbers (place integer, value bigint)')
  for (const [index, value] of values.entries()) {
    await place.store.transactions.run(
      ({ tx }) => tx.query('insert into numbers values (?, ?) returning value', [index, value]),
      TRANSACTION,
    )
  }
  const rows = await sql.query<{ value: string | number | bigint }>('select value from numbers order by place')
  assert.deepEqual(
    rows.map(({ value }) => BigInt(value)),
    values,
  )
  // What fits into a number is one, as from every SQLite driver.
  if (sql.dialect.name === 'sqlite') assert.deepEqual(rows.slice(0, 2), [{ value: 0 }, { value: 5 }])
})
