import assert from 'node:assert/strict'
import { DAY, MINUTE, SECOND } from '../../../../src/ledger/core/limits.ts'
import type { LedgerRecord, Policy, State } from '../../../../src/ledger/core/record.ts'
import type { ClaimRequest, DecisionOf, Grant, Request, Settlement } from '../../../../src/ledger/core/request.ts'
import type { Machine } from './world.ts'

export const policy: Policy = { onAbandoned: 'hold', retainMs: 7 * DAY, refuseMs: 0, unknownMs: 30 * DAY }
export const identity = { tenant: 'acme', caller: 'shop', operation: 'pay', key: 'k-1' }
export const LEASE_MS = 30 * SECOND

/** The life of one record under a machine: requests are decided one after the other, and time passes between them. */
export interface Life {
  readonly now: number
  readonly record: LedgerRecord | null
  pass(ms: number): void
  send<R extends Request>(request: R): DecisionOf<R>
  claim(claimId: string, options?: Partial<ClaimRequest>): DecisionOf<ClaimRequest>
  /** Claims, and fails without a lease. */
  lease(claimId: string, options?: Partial<ClaimRequest>): Grant
  settle(grant: Grant, to: Settlement): DecisionOf<Request & { kind: 'settle' }>
}

export function createLife(machine: Machine): Life {
  let now = 1_700_000_000_000
  let fence = 100
  let record: LedgerRecord | null = null
  const send = <R extends Request>(request: R): DecisionOf<R> => {
    const step = machine(record, request, { now, fence: ++fence })
    record = step.record
    return step.decision as DecisionOf<R>
  }
  const claim: Life['claim'] = (claimId, options = {}) => send({ ...claimRequest(claimId), ...options })
  return {
    get now() {
      return now
    },
    get record() {
      return record
    },
    pass: (ms) => {
      now += ms
    },
    send,
    claim,
    lease: (claimId, options) => {
      const decision = claim(claimId, options)
      assert.ok(decision.kind === 'first_attempt' || decision.kind === 'reclaimed', `no lease but ${decision.kind}`)
      return decision.lease
    },
    settle: (grant, to) => send({ kind: 'settle', id: 'r', grant, to, pointer: null }),
  }
}

function claimRequest(claimId: string): ClaimRequest {
  return {
    kind: 'claim',
    id: 'r',
    identity,
    claimId,
    fingerprints: ['v1:1:a'],
    leaseMs: LEASE_MS,
    start: true,
    wait: false,
    policy,
  }
}

export const done = (data = 'done'): Settlement => ({ state: 'succeeded', outcome: { kept: 'response', data } })
export const refused = (data = 'no'): Settlement => ({ state: 'failed_terminal', outcome: { kept: 'response', data } })
export const notDone = (retryAfterMs = 0): Settlement => {
  return { state: 'failed_retryable', outcome: { kept: 'outcome', data: null }, retryAfterMs }
}
export const unclear: Settlement = { state: 'unknown', reason: 'timeout' }

/** Every state that a record can be in, reached the shortest way; `reserved` and `lapsed` are states of their own here. */
export const shapes = {
  reserved: (life) => void life.lease('c1', { start: false }),
  running: (life) => void life.lease('c1'),
  succeeded: (life) => void life.settle(life.lease('c1'), done()),
  failed_terminal: (life) => void life.settle(life.lease('c1'), refused()),
  failed_retryable: (life) => void life.settle(life.lease('c1'), notDone(MINUTE)),
  lapsed: (life) => {
    life.lease('c1', { policy: { ...policy, onAbandoned: 'rerun' } })
    life.pass(MINUTE)
    life.send({ kind: 'reconcile', id: 'r' })
  },
  unknown: (life) => void life.settle(life.lease('c1'), unclear),
  released: (life) => {
    const { identity: who, fingerprint, policy: rules } = life.lease('c1')
    life.send({ kind: 'release', id: 'r', identity: who, claimId: 'c1', fingerprint, policy: rules })
  },
  forgotten: (life) => {
    life.lease('c1')
    life.send({ kind: 'forget', id: 'r', by: 'ops', ifFence: null, onlyRunning: false })
  },
} as const satisfies Record<string, (life: Life) => void>

export type Shape = keyof typeof shapes

/** A life that has come to the given state, with the grant of its only claim. */
export function lifeIn(machine: Machine, shape: Shape): { life: Life; grant: Grant } {
  const life = createLife(machine)
  let grant: Grant | null = null
  const lease = life.lease.bind(life)
  life.lease = (claimId, options) => (grant = lease(claimId, options))
  shapes[shape](life)
  life.lease = lease
  assert.equal(life.record?.state, stateOf[shape])
  assert.ok(grant !== null)
  return { life, grant }
}

const stateOf: Record<Shape, State> = {
  reserved: 'in_progress',
  running: 'in_progress',
  succeeded: 'succeeded',
  failed_terminal: 'failed_terminal',
  failed_retryable: 'failed_retryable',
  lapsed: 'failed_retryable',
  unknown: 'unknown',
  released: 'vacant',
  forgotten: 'vacant',
}

export const shapeNames = Object.keys(shapes) as Shape[]
