import { hash } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { createLedger } from 'onceonly'
import { sqliteStore } from 'onceonly/sqlite'
import { drive } from '../harness/load.ts'
import { OPERATION, orderOf, partsOf, receiptOf } from '../harness/orders.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import type { SqliteTask } from './task.ts'
import { mustHold, WARM_UP_BY_HAND } from './task.ts'

/** What one would write by hand: insert, do it, update. Each write is a commit of its own. */
const RUNNING = 1
const SUCCEEDED = 2
const LEASE_MS = 30_000
const RETAIN_MS = 7 * 24 * 3_600_000
const POLICY = `rerun:${RETAIN_MS}:0:${30 * 24 * 3_600_000}`

const task = readTask<SqliteTask>()
await createTable(task.path)
const db = new DatabaseSync(task.path)
db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
mustEqual('the journal', db.prepare('PRAGMA journal_mode').get()?.['journal_mode'], 'wal')

const claim = db.prepare(`INSERT INTO onceonly_records
  (id, fence, state, due_at, claimed_at, incarnation, attempts, awaited, claim_id, fingerprint, policy, tenant, caller,
   operation, key)
  VALUES (?, ?, ${RUNNING}, ?, ?, ?, 1, 0, ?, ?, '${POLICY}', ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`)
const settle = db.prepare(`UPDATE onceonly_records
  SET state = ${SUCCEEDED}, due_at = NULL, settled_at = ?, expires_at = ?, gone_at = ?, kept = 0, outcome = ?
  WHERE id = ? AND fence = ?`)

let effects = 0
let fence = 0

async function request(number: number): Promise<unknown> {
  const order = orderOf(number)
  const { tenant, caller, key } = partsOf(number)
  const id = hash('sha256', JSON.stringify([tenant, caller, OPERATION, key]), 'buffer').subarray(0, 16)
  const fingerprint = `v1:1:${hash('sha256', JSON.stringify(order), 'base64url')}`
  const mine = ++fence
  const claimId = mine.toString(16).padStart(32, '0')
  const now = Date.now()
  const { changes } = claim.run(
    id,
    mine,
    now + LEASE_MS,
    now,
    mine,
    claimId,
    fingerprint,
    tenant,
    caller,
    OPERATION,
    key,
  )
  if (changes !== 1) throw new Error(`The key ${key} is taken.`)
  const receipt = await effect(order)
  const then = Date.now()
  settle.run(then, then + RETAIN_MS, then + RETAIN_MS, JSON.stringify(receipt), id, mine)
  return receipt
}

/** Asynchronous, as every real effect: between the two writes of a caller the others have their turn. */
async function effect(order: Parameters<typeof receiptOf>[0]) {
  effects++
  return receiptOf(order)
}

/** The very table that our store makes, so that both sides write the same columns, and the index that one would give it. */
async function createTable(path: string): Promise<void> {
  const store = sqliteStore(path)
  const ledger = createLedger({ store, background: false })
  const operation = ledger.operation({ name: 'bench.open', effect: 'repeatable' })
  await operation.run({ tenant: 'acme', caller: 'checkout', key: 'open' }, null, () => null)
  await ledger.stop()
  await store.stop()
  const file = new DatabaseSync(path)
  file.exec('DELETE FROM onceonly_records; CREATE UNIQUE INDEX by_id ON onceonly_records (id)')
  file.close()
}

const { requests, figures } = await drive({ ...task, warmUpRequests: WARM_UP_BY_HAND, request })
db.close()
mustEqual('effects', effects, requests)
mustHold(task.path, requests)
answer(figures)
