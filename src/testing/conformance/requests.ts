import type { Identity } from '../../ledger/core/identity.ts'
import { recordIdOf } from '../../ledger/core/identity.ts'
import { MINUTE, SECOND } from '../../ledger/core/limits.ts'
import type { Outcome, Policy } from '../../ledger/core/record.ts'
import type {
  ClaimRequest,
  DecisionOf,
  ForgetRequest,
  Grant,
  ReleaseRequest,
  Request,
  ResolveRequest,
  Settlement,
  SettleRequest,
} from '../../ledger/core/request.ts'
import type { AppliedDecision, Store } from '../../ledger/store/port.ts'
import { createRandom } from '../random.ts'
import { check } from './check.ts'

/** The words of the cases: requests with everything filled in that a case does not care about. */

export const CALL = { timeoutMs: 10 * SECOND }
export const LEASE_MS = 10 * SECOND
/** Past a lease and its grace. */
export const LAPSE_MS = 16 * SECOND
export const RETAIN_MS = 5 * MINUTE

export const policies = {
  hold: { onAbandoned: 'hold', retainMs: RETAIN_MS, refuseMs: 0, unknownMs: 10 * MINUTE },
  rerun: { onAbandoned: 'rerun', retainMs: RETAIN_MS, refuseMs: 0, unknownMs: 10 * MINUTE },
  probe: { onAbandoned: 'probe', retainMs: RETAIN_MS, refuseMs: 0, unknownMs: 10 * MINUTE },
  refuse: { onAbandoned: 'hold', retainMs: RETAIN_MS, refuseMs: 5 * MINUTE, unknownMs: 10 * MINUTE },
  window: {
    onAbandoned: 'hold_attached',
    retainMs: RETAIN_MS,
    retainFrom: 'claimed',
    refuseMs: 0,
    unknownMs: 10 * MINUTE,
  },
} as const satisfies Record<string, Policy>

const ids = createRandom(Date.now())
export const newClaimId = () => ids.id()

export function identityOf(key: string): Identity {
  return { tenant: 'tenant', caller: 'caller', operation: 'operation', key }
}

export const PAYLOAD = 'v1:1:one'
export const OTHER_PAYLOAD = 'v1:1:another'

export function claim(key: string, options: Partial<ClaimRequest> = {}): ClaimRequest {
  const identity = options.identity ?? identityOf(key)
  return {
    kind: 'claim',
    id: recordIdOf(identity),
    identity,
    claimId: newClaimId(),
    fingerprints: [PAYLOAD],
    leaseMs: LEASE_MS,
    start: true,
    wait: false,
    policy: policies.hold,
    ...options,
  }
}

export const kept = (data: string): Outcome => ({ kept: 'response', data })
export const success = (data = '"done"'): Settlement => ({ state: 'succeeded', outcome: kept(data) })
export const refusal = (data = '{"name":"No"}'): Settlement => ({ state: 'failed_terminal', outcome: kept(data) })
export const later = (retryAfterMs: number): Settlement => ({
  state: 'failed_retryable',
  outcome: kept('{"name":"Later"}'),
  retryAfterMs,
})
export const unknown: Settlement = { state: 'unknown', reason: null }

export function settle(grant: Grant, to: Settlement = success()): SettleRequest {
  return { kind: 'settle', id: grant.id, grant, to, pointer: null }
}

export function release({ id, identity, claimId, fingerprint, policy }: Grant): ReleaseRequest {
  return { kind: 'release', id, identity, claimId, fingerprint, policy }
}

export function resolve(id: string, to: ResolveRequest['to'], options: Partial<ResolveRequest> = {}): ResolveRequest {
  return { kind: 'resolve', id, by: 'kit', ifFence: null, probeFence: null, to, ...options }
}

export function forget(id: string, options: Partial<ForgetRequest> = {}): ForgetRequest {
  return { kind: 'forget', id, by: 'kit', ifFence: null, onlyRunning: false, ...options }
}

/** One request, one answer; a row that failed is an error here. */
export async function ask<R extends Request>(store: Store, request: R): Promise<AppliedDecision<DecisionOf<R>>> {
  const applied = await store.claims.apply(request, CALL)
  check(applied !== undefined, 'one request has one answer')
  if ('error' in applied) throw applied.error
  return applied
}

export async function granted(store: Store, request: ClaimRequest): Promise<Grant> {
  const { decision } = await ask(store, request)
  check(decision.kind === 'first_attempt' || decision.kind === 'reclaimed', `expected a grant, got ${decision.kind}`)
  return decision.lease
}

export async function kindOf(store: Store, request: Request): Promise<string> {
  return (await ask(store, request)).decision.kind
}

export const advance = (store: Store, ms: number) => store.clock.advance(ms, CALL)
