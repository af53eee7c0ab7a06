import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { recordIdOf } from '../../core/identity.ts'
import type { Policy } from '../../core/record.ts'
import type { ClaimRequest, Grant, Settlement, SettleRequest } from '../../core/request.ts'
import type { Applied } from '../../store/port.ts'
import type { SqliteStore, SqliteStoreOptions } from './index.ts'
import { sqliteStore } from './index.ts'

/** What the tests of this store share: a fresh file each, and the requests of an ordinary life. */

/** Long, so that only calls that a test blocks on purpose time out. */
export const CALL = { timeoutMs: 60_000 }
export const TRANSACTION = { timeoutMs: 60_000, lockMs: 60_000, refuseTwinOf: null }

export function freshPath(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'onceonly-sqlite-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'records.db')
}

export function openStore(t: TestContext, path: string, options: Partial<SqliteStoreOptions> = {}): SqliteStore {
  const store = sqliteStore(path, { testClock: true, ...options })
  t.after(() => store.stop())
  return store
}

export function freshStore(t: TestContext, options: Partial<SqliteStoreOptions> = {}): SqliteStore {
  return openStore(t, freshPath(t), options)
}

export const POLICY: Policy = {
  onAbandoned: 'hold',
  retainMs: 60_000,
  refuseMs: 0,
  unknownMs: 600_000,
}

let claims = 0

export function claimOf(key: string, fields: Partial<ClaimRequest> = {}): ClaimRequest {
  const identity = { tenant: 'acme', caller: 'web', operation: 'order.create', key }
  return {
    kind: 'claim',
    id: recordIdOf(identity),
    identity,
    claimId: `${process.pid}-${++claims}`,
    fingerprints: ['v1:1:same'],
    leaseMs: 30_000,
    start: true,
    wait: false,
    policy: POLICY,
    ...fields,
  }
}

export const DONE: Settlement = { state: 'succeeded', outcome: { kept: 'response', data: '"done"' } }

export function settleOf(grant: Grant, to: Settlement = DONE): SettleRequest {
  return { kind: 'settle', id: grant.id, grant, to, pointer: null }
}

/** The lease of a claim that must have been granted. */
export function leaseOf(applied: Applied<ClaimRequest> | undefined): Grant {
  if (applied === undefined || 'error' in applied) throw new Error('the claim failed', { cause: applied?.error })
  if (!('lease' in applied.decision)) throw new Error(`the claim was answered ${applied.decision.kind}`)
  return applied.decision.lease
}

export async function claimIn(store: SqliteStore, key: string, fields: Partial<ClaimRequest> = {}): Promise<Grant> {
  const applied = await store.claims.apply(claimOf(key, fields), CALL)
  return leaseOf(applied)
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms))
}
