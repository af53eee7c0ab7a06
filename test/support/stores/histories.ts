import fc from 'fast-check'
import type { OnAbandoned } from '../../../src/ledger/core/record.ts'
import type { ClaimRequest, Grant, Request, Settlement } from '../../../src/ledger/core/request.ts'

/** What differs between the stores. */
export interface HistoryForm {
  readonly keys: number
  readonly longest: number
  readonly onAbandoned: readonly OnAbandoned[]
  /** JSON of outcomes. */
  readonly outcomes: readonly (string | null)[]
  /** Some requests of a holder do not match what the store knows. */
  readonly lies: (grant: Grant) => readonly Partial<Grant>[]
  readonly claimOf: (key: string, fields: Partial<ClaimRequest>) => ClaimRequest
}

export interface Move {
  readonly batch: readonly Draw[]
  readonly advanceMs: number
  readonly inTransaction: boolean
}

/** A request as a few small numbers, made into a real one when earlier grants are known. */
interface Draw {
  readonly key: number
  readonly kind: Exclude<Request['kind'], 'replace'>
  readonly dice: number
  readonly grant: number
}

const kinds = ['claim', 'claim', 'claim', 'settle', 'settle', 'settle', 'start', 'renew', 'attach', 'release'] as const
const rareKinds = ['reconcile', 'probe', 'resolve', 'forget', 'unique'] as const

const pick = <T>(from: readonly T[], dice: number): T => from[dice % from.length] as T

/** Random histories of requests, for a comparison of a store with the pure rules. */
export function histories({ keys, longest }: HistoryForm): fc.Arbitrary<Move[]> {
  const draws: fc.Arbitrary<Draw> = fc.record({
    key: fc.nat(keys - 1),
    kind: fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...kinds) },
      { weight: 1, arbitrary: fc.constantFrom(...rareKinds) },
    ),
    dice: fc.nat(1_000_000),
    /** Counted from the newest: an old one belongs to a late loser. */
    grant: fc.constantFrom(0, 0, 0, 1, 2),
  })
  return fc.array(
    fc.record({
      batch: fc.uniqueArray(draws, { selector: ({ key }) => key, minLength: 1, maxLength: keys }),
      advanceMs: fc.constantFrom(0, 0, 0, 1, 900, 5_000, 7_000, 40_000, 90_000),
      inTransaction: fc.boolean(),
    }),
    { minLength: 10, maxLength: longest, size: 'max' },
  )
}

/** The request of a draw, or null where there is no grant that it could use. */
export function requestOf(form: HistoryForm, draw: Draw, grants: readonly Grant[], step: number): Request | null {
  const { key, kind, dice, grant } = draw
  const onAbandoned = pick(form.onAbandoned, dice)
  const window = pick([{}, {}, { retainFrom: 'claimed' }] as const, dice >> 5)
  const policy = { ...window, onAbandoned, retainMs: 30_000, refuseMs: pick([0, 20_000], dice >> 3), unknownMs: 60_000 }
  const fingerprints: [string] = [pick([...Array(12).fill('v1:1:same'), 'v1:1:other', 'v1:2:newer'], dice >> 1)]
  const claimId = pick([`claim ${step}.${key}`, `again ${key}`], dice >> 2)
  const fresh = form.claimOf(`key ${key}`, { policy, fingerprints, claimId, leaseMs: 2_000 })
  const { id, identity } = fresh
  const held = forged(form, pick(grants.filter((each) => each.id === id).toReversed(), grant), dice >> 8)
  switch (kind) {
    case 'claim':
      return { ...fresh, start: dice % 4 > 0, wait: dice % 3 === 0 }
    case 'release':
      return { kind, id, identity, claimId: held?.claimId ?? claimId, fingerprint: fingerprints[0], policy }
    case 'reconcile':
      return { kind, id }
    case 'probe':
      return { kind, id, claimId, leaseMs: 2_000 }
    case 'resolve': {
      const outcome = { kept: 'response', data: '"resolved"' } as const
      const to = pick([{ kind: 'succeeded', outcome }, { kind: 'failed', outcome }, { kind: 'rerun' }] as const, dice)
      const later = { kind: 'cannot_tell', probeAfterMs: 100 } as const
      return { kind, id, by: 'me', ifFence: null, probeFence: null, to: dice % 5 === 0 ? later : to }
    }
    case 'forget': {
      const ifFence = held !== undefined && dice % 2 === 0 ? held.fence : null
      return { kind, id, by: 'me', ifFence, onlyRunning: dice % 3 === 0 }
    }
    case 'unique':
      return { kind, id, identity, claimId, owner: pick(['one', 'two'], dice) }
    case 'start':
    case 'renew':
    case 'attach':
    case 'settle':
      return held === undefined ? null : holderRequest(form, kind, held, dice, step)
  }
}

type HolderKind = 'start' | 'renew' | 'attach' | 'settle'

function holderRequest(form: HistoryForm, kind: HolderKind, held: Grant, dice: number, step: number): Request {
  const { id, claimId, fence } = held
  const pointer = { type: 'order', id: `${step}` }
  switch (kind) {
    case 'start':
    case 'renew':
      return { kind, id, claimId, fence, leaseMs: 2_000 }
    case 'attach':
      return { kind, id, claimId, fence, pointer }
    case 'settle':
      return { kind, id, grant: held, to: settlement(form, dice), pointer: dice % 4 === 0 ? pointer : null }
  }
}

function settlement({ outcomes }: HistoryForm, dice: number): Settlement {
  const kept = pick(['response', 'outcome', 'not_stored'] as const, dice)
  const outcome = { kept, data: pick(outcomes, dice >> 2) }
  switch (pick(['succeeded', 'failed_terminal', 'failed_retryable', 'unknown', 'succeeded'] as const, dice >> 4)) {
    case 'succeeded':
      return { state: 'succeeded', outcome }
    case 'failed_terminal':
      return { state: 'failed_terminal', outcome }
    case 'failed_retryable':
      return { state: 'failed_retryable', outcome, retryAfterMs: (dice >> 6) % 3_000 }
    case 'unknown':
      return { state: 'unknown', reason: pick([null, '"why"'], dice >> 6) }
  }
}

function forged({ lies }: HistoryForm, grant: Grant | undefined, dice: number): Grant | undefined {
  if (grant === undefined || dice % 4 > 0) return grant
  return { ...grant, ...pick(lies(grant), dice >> 2) }
}
