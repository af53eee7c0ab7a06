import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { ClaimRequest, Grant } from '../../core/request.ts'
import type { Applied } from '../../store/port.ts'
import { claimOf } from '../../store/test-requests.ts'
import type { SqliteStore, SqliteStoreOptions } from './index.ts'
import { sqliteStore } from './index.ts'

export { claimOf, DONE, POLICY, settleOf } from '../../store/test-requests.ts'

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
