import { hash } from 'node:crypto'
import type { Pool } from 'pg'
import { drive } from '../harness/load.ts'
import { OPERATION, orderOf, partsOf, receiptOf } from '../harness/orders.ts'
import { createPool, serverCpu } from '../harness/postgres.ts'
import { answer, mustEqual, readTask } from '../harness/program.ts'
import { createTables } from './tables.ts'
import type { PostgresTask } from './task.ts'
import { mustHold, WARM_UP } from './task.ts'

/** What one would write by hand: a prepared insert, the effect, a prepared update; a commit for each. */
const LEASE_MS = 30_000
const RETAIN_MS = 7 * 24 * 3_600_000
const POLICY = `rerun:${RETAIN_MS}:0:${30 * 24 * 3_600_000}`

const claim = {
  name: 'claim',
  text: `INSERT INTO onceonly_records (id, fence, incarnation, state, claimed_at, due_at, attempts, claim_id, fingerprint,
      policy, tenant, caller, operation, key)
    VALUES ($1, $2, $2, 1, $3, $4, 1, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (id) DO NOTHING`,
}
const settle = {
  name: 'settle',
  text: `UPDATE onceonly_records SET state = 2, due_at = NULL, settled_at = $1, expires_at = $2, gone_at = $2, kept = 0,
      outcome = $3 WHERE id = $4 AND fence = $5`,
}

const task = readTask<PostgresTask>()
const pool: Pool = createPool(task)
await createTables(pool)
let effects = 0
let fence = 0

async function request(number: number): Promise<unknown> {
  const order = orderOf(number)
  const { tenant, caller, key } = partsOf(number)
  const id = hash('sha256', JSON.stringify([tenant, caller, OPERATION, key]), 'hex').slice(0, 32)
  const fingerprint = `v1:1:${hash('sha256', JSON.stringify(order), 'base64url')}`
  const mine = ++fence
  const claimId = mine.toString(16).padStart(32, '0')
  const now = Date.now()
  const identity = [tenant, caller, OPERATION, key]
  const values = [id, mine, now, now + LEASE_MS, claimId, fingerprint, POLICY, ...identity]
  const claimed = await pool.query({ ...claim, values })
  if (claimed.rowCount !== 1) throw new Error(`The key ${key} is taken.`)
  effects++
  const receipt = receiptOf(order)
  const then = Date.now()
  await pool.query({ ...settle, values: [then, then + RETAIN_MS, JSON.stringify(receipt), id, mine] })
  return receipt
}

const { requests, figures } = await drive({ ...task, ...WARM_UP, serverCpuMs: serverCpu(task), request })
mustEqual('effects', effects, requests)
await mustHold(pool, requests)
await pool.end()
answer(figures)
