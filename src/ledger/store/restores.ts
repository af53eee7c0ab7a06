import { digestParts } from '../core/digest.ts'
import { notApplied, OnceError } from '../core/errors.ts'
import type { Fence, RecordId } from '../core/identity.ts'
import { ID_HEX_DIGITS } from '../core/identity.ts'
import { FOREVER, limits, MINUTE, SECOND } from '../core/limits.ts'
import type { LedgerRecord, Policy, Vacant } from '../core/record.ts'
import type { ClaimRequest, Request } from '../core/request.ts'
import type { AppliedDecision, Call, Claims, LostTime, Restores, Store } from './port.ts'

/**
 * A restored store says so in one record that is never swept. It is read when the first key with a time is claimed, and again
 * after a minute, so that servers need no restart.
 */
export const RESTORES_ID: RecordId = digestParts(['onceonly:restores']).slice(0, ID_HEX_DIGITS)
const TYPE = 'onceonly:restores'
const FRESH_MS = MINUTE
/** Older ones are forgotten: their keys are older than any client still sends. */
const KEPT_MOST = 16
/** Rounds for operators who do the same at the same moment. */
const TRIES = 5
/** Fences are microseconds; clocks of servers of one cluster differ by less than this. */
const CLOCKS_APART_US = 60 * SECOND * 1_000

/** Keys that an operator would look for, by the time in them. Null for keys without one. */
export function timeOfKey(key: string): number | null {
  const hex = UUID_V7.exec(key)
  return hex === null ? null : Number.parseInt(`${hex[1]}${hex[2]}`, 16)
}

const UUID_V7 = /^([0-9a-f]{8})-?([0-9a-f]{4})-?7[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i

interface Known {
  readonly record: LedgerRecord | null
  readonly lost: readonly LostTime[]
}

/** `store` is what users get; `raw` is what it stands on, which holds the mark as it is. */
export function withRestores<S extends Store>(store: S, raw: Store): S {
  let known: { readonly lost: readonly LostTime[]; readonly atMs: number } | null = null
  let looking: Promise<void> | null = null

  function look(call: Call): Promise<void> {
    looking ??= read(raw, call)
      .then(({ lost }) => void (known = { lost, atMs: performance.now() }))
      .finally(() => void (looking = null))
    return looking
  }

  /** A key with a time, which may have been lost with the store that was restored. */
  async function checked(request: ClaimRequest, time: number, call: Call): Promise<AppliedDecision> {
    if (known === null || performance.now() - known.atMs > FRESH_MS) {
      await look(call).catch((error: unknown) => {
        throw notApplied(error)
      })
    }
    if (known?.lost.some(({ from, to }) => from <= time && time <= to) === true) {
      const { now, records } = await store.claims.read([request.id], call)
      if (records[0] === null) return { decision: { kind: 'key_expired', verified: true }, record: null, now }
    }
    return await store.claims.apply<Request>(request, call)
  }

  function isNothingLost(): boolean {
    return known !== null && known.lost.length === 0 && performance.now() - known.atMs <= FRESH_MS
  }

  const { claims, queries } = store
  return {
    ...store,
    claims: {
      ...claims,
      apply: ((request: Request, call: Call) => {
        // An effect that may run again, or that was rolled back with the store, does so: nothing is to be refused. What a
        // JavaScript caller left out is refused by the store itself, alone and with its reason.
        if (request.kind === 'claim' && (request.policy as Policy | undefined)?.onAbandoned === 'hold') {
          const time = timeOfKey(request.identity.key)
          if (time !== null && !isNothingLost()) return checked(request, time, call)
        }
        return claims.apply(request, call)
      }) as Claims['apply'],
    },
    queries: {
      ...queries,
      list: async (filter, page, call) => {
        const { rows, cursor } = await queries.list(filter, page, call)
        return { rows: rows.filter(({ record }) => record.id !== RESTORES_ID), cursor }
      },
    },
    restores: {
      list: async (call) => (await read(raw, call)).lost,
      add: (from, call) => add(raw, from, call),
    } satisfies Restores,
  }
}

async function read(raw: Store, call: Call): Promise<Known> {
  const { records } = await raw.claims.read([RESTORES_ID], call)
  const record = records[0] ?? null
  const text = record?.pointer?.id ?? '[]'
  return { record, lost: JSON.parse(text) as LostTime[] }
}

async function add(raw: Store, from: number, call: Call): ReturnType<Restores['add']> {
  for (let tries = 0; tries < TRIES; tries++) {
    const to = await raw.clock.now(call)
    if (!(from <= to)) throw new OnceError('bad_option', 'The time of the backup is ahead of the clock of the store.')
    const { record, lost } = await read(raw, call)
    // A page, because records of one millisecond have no order by their fences.
    const { rows } = await raw.queries.list({ ended: true }, { limit: limits.pageRows, cursor: null }, call)
    const newestBefore = Math.max(0, ...rows.map(({ record }) => record.fence))
    // Above the clock and above all that is there: stores count on from their newest record.
    const fence = Math.max(to * 1_000, newestBefore) + CLOCKS_APART_US
    const all = [...lost, { from, to }].slice(-KEPT_MOST)
    const request = { kind: 'replace', id: RESTORES_ID, before: record, after: recordOf(all, fence, to) } as const
    const { decision } = await raw.claims.apply(request, call)
    // A Redis store counts in parts, each by the server's clock: the mark lifts its own part alone.
    const least = raw.name === 'redis' ? to * 1_000 : fence
    if (decision.kind === 'replaced') return { from, to, fence: least, newestBefore }
  }
  throw new OnceError('store_busy', 'Other processes wrote down a restored backup at the same time.')
}

function recordOf(lost: readonly LostTime[], fence: Fence, now: number): Vacant {
  return {
    state: 'vacant',
    id: RESTORES_ID,
    identity: { tenant: 'onceonly', caller: 'onceonly', operation: TYPE, key: 'restores' },
    fingerprint: 'v1:0:restores',
    incarnation: fence,
    fence,
    claimId: 'restores',
    attempts: 1,
    claimedAt: now,
    pointer: { type: TYPE, id: JSON.stringify(lost) },
    policy: { onAbandoned: 'hold', retainMs: FOREVER, refuseMs: 0, unknownMs: 0 },
    awaited: false,
    history: [],
    goneAt: FOREVER,
    forgotten: false,
  }
}
