import assert from 'node:assert/strict'
import type { Awaitable } from '../../runtime/runtime.ts'
import type { OnceError } from '../core/errors.ts'
import { isOnceError } from '../core/errors.ts'
import { recordIdOf } from '../core/identity.ts'
import type { Policy } from '../core/record.ts'
import type { ClaimRequest, Grant, Settlement, SettleRequest } from '../core/request.ts'
import type { RecordFilter, Store } from './port.ts'

/** The requests of an ordinary command, for the tests of every store. */

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

/** How a promise ended so far. */
export function watched<T>(answer: Awaitable<T>): { state: string; error: OnceError | null } {
  const seen: { state: string; error: OnceError | null } = { state: 'waiting', error: null }
  Promise.resolve(answer).then(
    () => void (seen.state = 'done'),
    (error: unknown) => {
      assert.ok(isOnceError(error))
      Object.assign(seen, { state: error.code, error })
    },
  )
  return seen
}

const CALL = { timeoutMs: 60_000 }

/** The keys of all records that fit, page by page. */
export async function pagesOf({ queries }: Pick<Store, 'queries'>, filter: RecordFilter, limit: number) {
  const pages: string[][] = []
  for (let cursor: string | null = null; ; ) {
    const page = await queries.list(filter, { limit, cursor }, CALL)
    pages.push(page.rows.map(({ record }) => record.identity.key))
    cursor = page.cursor
    if (cursor === null) return pages
  }
}
