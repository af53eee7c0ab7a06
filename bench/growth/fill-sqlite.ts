import { DatabaseSync } from 'node:sqlite'
import { createLedger } from 'onceonly'
import { sqliteStore } from 'onceonly/sqlite'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import { FILL_ROWS, fillingOf } from './filled.ts'

/** Fills a file that our store has made, in the order and into the indexes as they grow by themselves. */
const CACHE_KIB = 1_024 * 1_024
const SUCCEEDED = 2

const { path, records } = readTask<{ readonly path: string; readonly records: number }>()
const store = sqliteStore(path)
const ledger = createLedger({ store, background: false })
await ledger
  .operation({ name: 'growth.first', effect: 'repeatable' })
  .run({ tenant: 'acme', caller: 'checkout', key: 'first' }, null, () => null)
await ledger.stop()
await store.stop()

const db = new DatabaseSync(path)
// Nothing reads it before it is complete, so nothing needs to be durable yet.
db.exec(`PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -${CACHE_KIB}`)
const filling = fillingOf(records)
const fill = db.prepare(`
  INSERT INTO onceonly_records (id, fence, state, expires_at, gone_at, settled_at, claimed_at, incarnation, attempts,
    awaited, kept, claim_id, fingerprint, policy, tenant, caller, operation, key, outcome)
  WITH RECURSIVE n (i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n WHERE i < ?)
  SELECT randomblob(16), i, ${SUCCEEDED}, ends, ends, claimed + 20, claimed, i, 1, 0, 0, lower(hex(randomblob(16))),
    'v1:1:' || substr(lower(hex(randomblob(22))), 1, 43), ?, 'acme', 'checkout', ?, 'old-' || i, ?
  FROM (SELECT i, ? AS claimed, iif(i % ? = 0, ?, ?) AS ends FROM n)`)
// The store's own first record has fence 1.
for (let from = 2; from <= records; from += FILL_ROWS) {
  const to = Math.min(records, from + FILL_ROWS - 1)
  const { policy, operation, outcome, claimedAt, expiredEvery, expiredAt, expiresAt } = filling
  fill.run(from, to, policy, operation, outcome, claimedAt, expiredEvery, expiredAt, expiresAt)
}
db.exec('INSERT OR IGNORE INTO onceonly_ids (id, seq) SELECT id, seq FROM onceonly_records ORDER BY id')
db.prepare('UPDATE onceonly_meta SET fence = ?').run(records)
mustEqual('records', db.prepare('SELECT count(*) AS records FROM onceonly_records').get()?.['records'], records)
db.exec('PRAGMA journal_mode = WAL')
db.close()
answer({ records })
