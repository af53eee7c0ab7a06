import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOnceError } from '../../core/errors.ts'
import type { SqlValue } from '../../store/sql.ts'
import { freshStore, TRANSACTION } from './test-store.ts'

const refused = (error: unknown) => isOnceError(error, 'bad_option')

test('values go in and come out as what they are', async (t) => {
  const store = freshStore(t)
  await store.sql.query('CREATE TABLE v (t TEXT, i INTEGER, a)')
  const [row] = await store.sql.query('INSERT INTO v VALUES (?, ?, ?) RETURNING t, i, a, typeof(a) AS kind', [
    5,
    true,
    7,
  ])
  assert.deepEqual(row, { t: '5', i: 1, a: 7, kind: 'integer' })
  const bytes = new Uint8Array([0, 1, 255])
  const values: SqlValue[] = [bytes, null, 1.5, 12n, 'text', '']
  const [back] = await store.sql.query('SELECT ? AS a, ? AS b, ? AS c, ? AS d, ? AS e, ? AS f', values)
  assert.deepEqual(back, { a: bytes, b: null, c: 1.5, d: 12, e: 'text', f: '' })
  assert.deepEqual(await store.sql.query(`SELECT '?' AS q, "i" FROM v -- ?`), [{ q: '?', i: 1 }])
  assert.deepEqual(await store.sql.query(`WITH x AS (SELECT 1) INSERT INTO v (a) SELECT 8 RETURNING a`), [{ a: 8 }])
})

test('a missing or a wrong value is an error, not NULL', async (t) => {
  const store = freshStore(t)
  await assert.rejects(store.sql.query('SELECT ?'), refused)
  await assert.rejects(store.sql.query('SELECT 1', [1]), refused)
  for (const value of [undefined, {}, Symbol('x'), [1]]) {
    await assert.rejects(store.sql.query('SELECT ?', [value as unknown as SqlValue]), refused)
  }
})

test('user statements cannot end a transaction, or hide a second statement behind the first', async (t) => {
  const store = freshStore(t)
  await store.sql.query('CREATE TABLE v (a)')
  const texts = ['COMMIT', ' rollback', '/* x */ END', '-- x\nBEGIN', 'savepoint a', 'RELEASE a', ';COMMIT', 'VACUUM']
  for (const text of texts) {
    await assert.rejects(store.sql.query(text), refused)
    await assert.rejects(
      store.transactions.run(({ tx }) => tx.query(text), TRANSACTION),
      refused,
    )
  }
  await assert.rejects(store.sql.query('INSERT INTO v VALUES (1); COMMIT'), refused)
  assert.deepEqual(await store.sql.query('SELECT * FROM v'), [])
  await store.sql.query('INSERT INTO v VALUES (1); -- only a comment\n')
  assert.deepEqual(await store.sql.query('SELECT * FROM v;'), [{ a: 1 }])
})

test('many different texts are prepared without being kept forever', async (t) => {
  const store = freshStore(t)
  for (let n = 0; n < 600; n++) assert.deepEqual(await store.sql.query(`SELECT ${n} AS n`), [{ n }])
})
