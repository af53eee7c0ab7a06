import assert from 'node:assert/strict'
import { copyFileSync, renameSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { applyTo } from '../../../testing/apply-all.ts'
import { isOnceError } from '../../core/errors.ts'
import { CALL, claimIn, claimOf, freshPath, openStore, settleOf, TRANSACTION } from './test-store.ts'

const isReplaced = (error: unknown) =>
  isOnceError(error, 'store_replaced') && !error.retryable && error.applied === 'no' && /Restart/.test(error.message)

/** Restores a backup: replaces the file with an older copy. */
function backupOf(path: string): string {
  const backup = `${path}.backup`
  const db = new DatabaseSync(path)
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
  copyFileSync(path, backup)
  return backup
}

test('a file that is replaced under a running process is refused, whatever is asked of it', async (t) => {
  const path = freshPath(t)
  const store = openStore(t, path)
  const grant = await claimIn(store, 'before')
  await store.sql.query('CREATE TABLE orders (name TEXT)')
  const backup = backupOf(path)
  renameSync(backup, path)
  await assert.rejects(applyTo(store, claimOf('after'), CALL), isReplaced)
  await assert.rejects(applyTo(store, settleOf(grant), CALL), isReplaced)
  await assert.rejects(store.claims.read([grant.id], CALL), isReplaced)
  await assert.rejects(store.upkeep.sweep(null, 100, CALL), isReplaced)
  await assert.rejects(store.clock.now(CALL), isReplaced)
  await assert.rejects(
    store.transactions.run(({ tx }) => tx.query(`INSERT INTO orders VALUES ('lost')`), TRANSACTION),
    isReplaced,
  )
  // Another process that comes now has the restored file, and may claim in it what this one no longer can.
  const restarted = openStore(t, path)
  await claimIn(restarted, 'after')
  await assert.rejects(applyTo(store, claimOf('after'), CALL), isReplaced)
})

test('a transaction whose file is replaced meanwhile does not commit', async (t) => {
  const path = freshPath(t)
  const store = openStore(t, path)
  await store.sql.query('CREATE TABLE orders (name TEXT)')
  const backup = backupOf(path)
  const running = store.transactions.run(async ({ tx }) => {
    await tx.query(`INSERT INTO orders VALUES ('lost')`)
    renameSync(backup, path)
  }, TRANSACTION)
  await assert.rejects(running, isReplaced)
})

test('a file that was removed is not made again, and one that is back is used again', async (t) => {
  const path = freshPath(t)
  const store = openStore(t, path)
  const grant = await claimIn(store, 'before')
  const aside = `${path}.aside`
  renameSync(path, aside)
  await assert.rejects(applyTo(store, claimOf('after'), CALL), isReplaced)
  assert.throws(() => rmSync(path), { code: 'ENOENT' })
  renameSync(aside, path)
  assert.ok((await store.claims.read([grant.id], CALL)).records[0] !== null)
})
