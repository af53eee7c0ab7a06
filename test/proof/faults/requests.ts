import { recordIdOf } from '../../../src/ledger/core/identity.ts'
import type { ClaimRequest, Grant, SettleRequest } from '../../../src/ledger/core/request.ts'

/** Requests as the ledger makes them, and as it never would. */
export function claimOf(key: string, claimId: string, fields: Partial<ClaimRequest> = {}): ClaimRequest {
  const identity = { tenant: 'acme', caller: 'ann', operation: 'batch', key }
  return {
    kind: 'claim',
    id: recordIdOf(identity),
    identity,
    claimId,
    fingerprints: ['v1:1:same'],
    leaseMs: 30_000,
    start: true,
    wait: false,
    policy: { onAbandoned: 'rerun', retainMs: 600_000, refuseMs: 0, unknownMs: 600_000 },
    ...fields,
  }
}

export function settleOf(grant: Grant, data: string): SettleRequest {
  const to = { state: 'succeeded', outcome: { kept: 'response', data } } as const
  return { kind: 'settle', id: grant.id, grant, to, pointer: null }
}
