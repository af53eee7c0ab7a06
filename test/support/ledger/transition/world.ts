import { limits } from '../../../../src/ledger/core/limits.ts'
import type { LedgerRecord, OnAbandoned, Policy } from '../../../../src/ledger/core/record.ts'
import type {
  ClaimRequest,
  Grant,
  ReleaseRequest,
  Request,
  Settlement,
  SettleRequest,
} from '../../../../src/ledger/core/request.ts'
import type { Moment, Step } from '../../../../src/ledger/core/transition.ts'

/** The machine under examination: `transition`, or a copy of it that was broken on purpose. */
export type Machine = (stored: LedgerRecord | null, request: Request, at: Moment) => Step

/** Time moves in steps of the grace: a lease is two of them long, so that one half of it can be renewed. */
export const TICK = limits.leaseGraceMs
export const LEASE_MS = 2 * TICK
export const RETAIN_TICKS = 2

export interface Scene {
  readonly machine: Machine
  readonly policy: Policy
  /** The first attempt of every process is reserved ahead and started by a write of its own. */
  readonly reserve: boolean
  readonly processes: number
  readonly attempts: number
  /** How a holder may settle. */
  readonly settlements: readonly Settlement['state'][]
  /** Copies of requests arrive late, and days pass. */
  readonly late: boolean
  /** The number of operator actions on the record in all: resolve, release, forget. */
  readonly actions: number
  /** How often the reconciler may probe an unknown effect. */
  readonly probes: number
}

export function sceneOf(machine: Machine, onAbandoned: OnAbandoned, options: Partial<Scene> = {}): Scene {
  const policy: Policy = { onAbandoned, retainMs: RETAIN_TICKS * TICK, refuseMs: 0, unknownMs: 2 * TICK }
  const settlements = ['succeeded', 'failed_terminal', 'failed_retryable', 'unknown'] as const
  const size = { processes: 3, attempts: 2, settlements, late: true, actions: 1, probes: 1 }
  return { machine, policy, reserve: false, ...size, ...options }
}

/** What a process knows of itself. It learns of the store only by answers, and any of them may be lost. */
export interface Process {
  readonly index: number
  /** Claims begun so far; a crash or an end makes room for the next one. */
  readonly attempt: number
  readonly phase: 'idle' | 'claiming' | 'holding' | 'settling' | 'releasing'
  /** When the claim under way was sent: the lease counts from here for the process itself. */
  readonly sentAt: number
  readonly deadline: number
  readonly grant: Grant | null
  readonly started: boolean
  /** Its effect has begun and may have happened. */
  readonly ran: boolean
  readonly to: Settlement['state'] | null
  /** An operator took its lease away, and is responsible for what it does from then on. */
  readonly revoked: boolean
  /** A copy of a request that is still on its way, whatever became of its sender. */
  readonly late: Late | null
}

export type Late = ClaimRequest | SettleRequest

/** What really happened, kept beside the record, so that a machine that forgets is detected. */
export interface Ghost {
  /** Until when a recorded success must be replayed. */
  readonly successUntil: number | null
  /** An effect of this life may have happened, and no settle denied it. */
  readonly mayHaveRun: boolean
  /** The incarnation under which effects of this life ran: their keys derive from it. */
  readonly incarnation: number | null
  /** The last claim that its holder ended, until another one is granted. */
  readonly lastEnded: string | null
  /** Operator actions on the record so far. */
  readonly actions: number
  readonly probes: number
  /** The fence of a probe that has not answered yet. */
  readonly probeFence: number | null
}

export interface World {
  readonly now: number
  readonly fence: number
  readonly stored: LedgerRecord | null
  readonly processes: readonly Process[]
  readonly ghost: Ghost
}

export function firstWorld(scene: Scene): World {
  const processes = Array.from({ length: scene.processes }, (_, index) => ({ ...fresh, index }))
  return { now: 1_000 * TICK, fence: 0, stored: null, processes, ghost: noGhost }
}

const fresh = {
  attempt: 0,
  phase: 'idle',
  sentAt: 0,
  deadline: 0,
  grant: null,
  started: false,
  ran: false,
  to: null,
  revoked: false,
  late: null,
} as const

const noGhost: Ghost = {
  successUntil: null,
  mayHaveRun: false,
  incarnation: null,
  lastEnded: null,
  actions: 0,
  probes: 0,
  probeFence: null,
}

/** The attempt is over for the process; only a late copy may remain of it. */
export function ended(process: Process): Process {
  return { ...fresh, index: process.index, attempt: process.attempt, late: process.late }
}

const identity = { tenant: 't', caller: 'c', operation: 'o', key: 'k' }
const id = 'record'
const FINGERPRINT = 'v1:1:same'

export function claimOf(scene: Scene, process: Process): ClaimRequest {
  return {
    kind: 'claim',
    id,
    identity,
    claimId: claimIdOf(process),
    fingerprints: [FINGERPRINT],
    leaseMs: LEASE_MS,
    start: !(scene.reserve && process.attempt === 1),
    wait: false,
    policy: scene.policy,
  }
}

export function claimIdOf({ index, attempt }: Process): string {
  return `${index}.${attempt}`
}

/** A process that has taken no part so far. */
export function strangersClaim(scene: Scene, fingerprint = FINGERPRINT): ClaimRequest {
  const shape = claimOf(scene, { ...fresh, index: -1, attempt: 2 })
  return { ...shape, claimId: 'stranger', fingerprints: [fingerprint] }
}

export function releaseOf(scene: Scene, process: Process): ReleaseRequest {
  return { kind: 'release', id, identity, claimId: claimIdOf(process), fingerprint: FINGERPRINT, policy: scene.policy }
}

export function settleOf(grant: Grant, state: Settlement['state']): SettleRequest {
  const outcome = { kept: 'response', data: state } as const
  const to: Settlement =
    state === 'unknown'
      ? { state, reason: null }
      : state === 'failed_retryable'
        ? { state, outcome, retryAfterMs: 0 }
        : { state, outcome }
  return { kind: 'settle', id, grant, to, pointer: null }
}

export function holderRequests(grant: Grant): Request[] {
  const { claimId, fence } = grant
  return [
    { kind: 'start', id, claimId, fence, leaseMs: LEASE_MS },
    { kind: 'renew', id, claimId, fence, leaseMs: LEASE_MS },
    { kind: 'attach', id, claimId, fence, pointer: { type: 'stale', id: 'stale' } },
    settleOf(grant, 'succeeded'),
    settleOf(grant, 'failed_terminal'),
    settleOf(grant, 'failed_retryable'),
    settleOf(grant, 'unknown'),
  ]
}
