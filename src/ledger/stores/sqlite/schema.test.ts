import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { isOnceError } from '../../core/errors.ts'
import type { Migration } from '../../store/sql.ts'
import { CALL, claimIn, freshPath, freshStore, openStore } from './test-store.ts'

const rooms: readonly Migration[] = [
  { version: 1, oldestCode: 1, up: () => ['CREATE TABLE room_one (a TEXT)'] },
  {
    version: 2,
    oldestCode: 2,
    up: () => ['ALTER TABLE room_one ADD COLUMN b TEXT', 'CREATE TABLE room_two (a)'],
  },
]

test('another room keeps tables of its own, migrated once, and old code of it is refused', async (t) => {
  const store = freshStore(t)
  await Promise.all([store.sql.migrate('room', rooms.slice(0, 1)), store.sql.migrate('room', rooms)])
  await store.sql.migrate('room', rooms)
  await store.sql.query('INSERT INTO room_one (a, b) VALUES (?, ?)', ['1', '2'])
  await assert.rejects(store.sql.migrate('room', rooms.slice(0, 1)), (error) => isOnceError(error, 'schema_too_new'))
  await assert.rejects(store.sql.migrate('ledger', rooms), (error) => isOnceError(error, 'bad_option'))
})

test('a migration that fails leaves nothing behind', async (t) => {
  const store = freshStore(t)
  const broken = [{ version: 1, oldestCode: 1, up: () => ['CREATE TABLE half (a)', 'NONSENSE'] }]
  await assert.rejects(store.sql.migrate('room', broken), /syntax error/)
  await assert.rejects(store.sql.query('SELECT * FROM half'), /no such table/)
  await store.sql.migrate('room', rooms)
})

test('code that is older than the schema refuses; a newer schema that allows it is fine', async (t) => {
  const path = freshPath(t)
  const store = openStore(t, path)
  await claimIn(store, 'a')
  await store.stop()
  const db = new DatabaseSync(path)
  db.exec(`INSERT INTO onceonly_migrations VALUES ('ledger', 2, 1, 0)`)
  const allowed = openStore(t, path)
  await claimIn(allowed, 'b')
  await allowed.stop()
  db.exec(`INSERT INTO onceonly_migrations VALUES ('ledger', 3, 3, 0)`)
  db.close()
  const refused = openStore(t, path)
  await assert.rejects(claimIn(refused, 'c'), (error) => isOnceError(error, 'schema_too_new'))
  await assert.rejects(refused.claims.read([], CALL), (error) => isOnceError(error, 'schema_too_new'))
})

test('a file that is no database is named, and the store works once it is gone', async (t) => {
  const path = freshPath(t)
  writeFileSync(path, 'this is not a database, and it is long enough to be looked at'.repeat(100))
  const store = openStore(t, path)
  await assert.rejects(
    claimIn(store, 'a'),
    (error) => isOnceError(error, 'store_unavailable') && error.message.includes(path),
  )
  writeFileSync(path, '')
  await claimIn(store, 'a')
})
