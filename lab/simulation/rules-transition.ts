import { isDeepStrictEqual } from 'node:util'
import { limits } from '../../src/ledger/core/limits.ts'
import type { LedgerRecord } from '../../src/ledger/core/record.ts'
import type { Seen } from './life.ts'
import { isGrant, isHeld, recordText } from './life.ts'

/** A rule says what is wrong with a decision of the store, or null. Its name is the name of the rule. */
export type TransitionRule = (seen: Seen) => string | null

/** By the store's clock a lease lives to its end and the grace; until then no other claim gets one. */
function oneLiveLease({ standing, request, decision, after, now }: Seen): string | null {
  if (!isGrant(decision) || request.kind !== 'claim' || standing?.state !== 'in_progress') return null
  if (standing.claimId === request.claimId) return null
  if (now >= standing.leaseUntil + limits.leaseGraceMs) return null
  return `a lease under fence ${after?.fence} was granted while fence ${standing.fence} lives until ${standing.leaseUntil}`
}

/** Also across expiry, sweep and forget. */
function fencesOnlyGrow({ life, before, request, decision, after }: Seen): string | null {
  if (after === null || after === before) return null
  if (after.fence < life.topFence) return `${recordText(after)} was written after fence ${life.topFence} had been given`
  const own = request.kind === 'claim' && before?.state === 'in_progress' && before.claimId === request.claimId
  if (isGrant(decision) && !own && after.fence <= life.topFence) return `fence ${after.fence} was granted twice`
  return null
}

/** Inside its retention an outcome is only ever replayed; only an operator can make it be forgotten. */
function outcomesStay({ standing, request, after, now }: Seen): string | null {
  if (standing?.state !== 'succeeded' && standing?.state !== 'failed_terminal') return null
  if (standing.expiresAt <= now || request.kind === 'forget') return null
  if (after?.state === standing.state && after.fence === standing.fence) {
    if (isDeepStrictEqual(after.outcome, standing.outcome) && after.expiresAt === standing.expiresAt) return null
  }
  return `${recordText(standing)} became ${recordText(after)} by a ${request.kind}`
}

/** Settled, unknown, or asked to come back later: none of these gives a lease to an identical claim. */
function onlyTheFreeIsGranted({ standing, request, decision, now }: Seen): string | null {
  if (!isGrant(decision) || request.kind !== 'claim' || standing === null) return null
  const text = `${recordText(standing)} was granted to claim ${request.claimId.slice(0, 6)}`
  switch (standing.state) {
    case 'succeeded':
    case 'failed_terminal':
      return text
    case 'unknown':
      return isOverWindow(standing, now) ? null : text
    case 'failed_retryable':
      if (standing.retryAt > now) return `${text}, ${standing.retryAt - now} ms too early`
      return standing.claimId === request.claimId ? `${text}, a late copy of a settled claim` : null
    case 'vacant':
      return standing.claimId === request.claimId ? `${text}, a late copy of a claim that was given back` : null
    case 'in_progress': {
      if (standing.claimId === request.claimId) return null
      return isHeld(standing) && !isOverWindow(standing, now) ? `${text}, although its effect may have happened` : null
    }
  }
}

/** A window that counts from its claim ends also for what is unknown in it, or lapses to unknown after it. */
function isOverWindow({ state, policy, claimedAt }: LedgerRecord, now: number): boolean {
  if (state !== 'unknown' && state !== 'in_progress') return false
  return policy.retainFrom === 'claimed' && claimedAt + policy.retainMs <= now
}

/** A lost acknowledgement of one's own claim is not a rival. */
function ownClaimIsRecognised({ standing, request, decision, after }: Seen): string | null {
  if (request.kind !== 'claim' || standing?.state !== 'in_progress' || standing.claimId !== request.claimId) return null
  if (isGrant(decision) && after?.fence === standing.fence) return null
  return `claim ${request.claimId.slice(0, 6)} holds fence ${standing.fence} and got ${decision.kind}`
}

function withoutHistory(record: LedgerRecord | null): unknown {
  return record === null ? null : { ...record, history: null }
}

function staleSettleChangesNothing({ standing, request, decision, after }: Seen): string | null {
  if (request.kind !== 'settle' || standing === null) return null
  const { fence, claimId } = request.grant
  if (standing.fence === fence && standing.claimId === claimId) return null
  if (decision.kind !== 'lease_lost') return `a settle under fence ${fence} was applied to ${recordText(standing)}`
  if (isDeepStrictEqual(withoutHistory(after), withoutHistory(standing))) return null
  return `a settle under fence ${fence} turned ${recordText(standing)} into ${recordText(after)}`
}

/** Heartbeats, starts, pointers and releases of others change nothing. */
function onlyTheHolderWrites({ standing, request, after }: Seen): string | null {
  if (standing === null) return null
  const { kind } = request
  if (kind !== 'start' && kind !== 'renew' && kind !== 'attach' && kind !== 'release') return null
  const fence = kind === 'release' ? standing.fence : request.fence
  if (standing.claimId === request.claimId && standing.fence === fence) return null
  if (isDeepStrictEqual(after, standing)) return null
  return `a ${kind} of another holder turned ${recordText(standing)} into ${recordText(after)}`
}

/** It outranks every other answer, and never changes the record. */
function keyReusedChangesNothing({ before, standing, request, decision, after }: Seen): string | null {
  if (request.kind !== 'claim') return null
  const reused =
    standing !== null && standing.state !== 'vacant' && !request.fingerprints.includes(standing.fingerprint)
  if (reused !== (decision.kind === 'key_reused'))
    return `another payload over ${recordText(standing)}: ${decision.kind}`
  if (!reused || isDeepStrictEqual(before, after)) return null
  return `a reused key turned ${recordText(before)} into ${recordText(after)}`
}

/** Effect keys derive from it: equal for every attempt, rerun and resolve, new after expiry or forget. */
function incarnationStays({ life, before, standing, request, after, now }: Seen): string | null {
  if (after === null || after === before) return null
  const forgotten = standing?.state === 'vacant' && standing.forgotten
  if (standing === null || forgotten) {
    const isNew = after.incarnation > life.topFence || request.kind === 'settle'
    return isNew ? null : `the new record ${recordText(after)} has the old incarnation ${after.incarnation}`
  }
  if (after.incarnation === standing.incarnation) return null
  if (request.kind === 'claim' && isOverWindow(standing, now)) return null
  if (request.kind === 'claim' && standing.state === 'vacant') {
    const other = !request.fingerprints.includes(standing.fingerprint)
    if (other || standing.attempts === 0) return null
  }
  return `the incarnation of ${recordText(standing)} moved from ${standing.incarnation} to ${after.incarnation}`
}

/** Whatever takes a record away from its holder raises the fence. */
function fencesRise({ before, standing, request, decision, after }: Seen): string | null {
  if (standing === null || after === null || after === before) return null
  const taken =
    (request.kind === 'release' && standing.state === 'in_progress' && decision.kind === 'applied') ||
    (request.kind === 'resolve' && decision.kind === 'done' && request.to.kind !== 'cannot_tell') ||
    (request.kind === 'forget' && decision.kind === 'done') ||
    (request.kind === 'claim' && isGrant(decision) && standing.claimId !== request.claimId)
  if (!taken || after.fence > standing.fence) return null
  return `a ${request.kind} left the fence of ${recordText(standing)} as it was`
}

/** An operator's action under a fence, and a probe that lost its turn, change nothing when the fence has moved. */
function fencesAreCompared({ standing, request, decision }: Seen): string | null {
  if ((request.kind !== 'resolve' && request.kind !== 'forget') || decision.kind !== 'done') return null
  if (request.ifFence !== null && standing?.fence !== request.ifFence) {
    return `a ${request.kind} for fence ${request.ifFence} changed ${recordText(standing)}`
  }
  if (request.kind !== 'resolve' || request.probeFence === null) return null
  if (standing?.state === 'unknown' && standing.probe?.fence === request.probeFence) return null
  return `the answer of the probe under ${request.probeFence} changed ${recordText(standing)}`
}

/** A claim that was given back is not granted again by a late copy of itself. */
function givenBackStaysGivenBack({ life, request, decision }: Seen): string | null {
  if (request.kind !== 'claim' || !isGrant(decision) || life.givenBack !== request.claimId) return null
  return `claim ${request.claimId.slice(0, 6)} was given back, and granted after that`
}

/** One process at a time may ask about an unknown outcome, and not before it is time to ask again. */
function oneProbeAtATime({ standing, request, decision, now }: Seen): string | null {
  if (request.kind !== 'probe' || decision.kind !== 'probe_granted') return null
  if (standing?.state !== 'unknown') return `${recordText(standing)} is to be probed`
  const { probe, probeAt } = standing
  if (now < probeAt) return `${recordText(standing)} is asked about ${probeAt - now} ms too early`
  if (probe === null || probe.claimId === request.claimId || now >= probe.until + limits.leaseGraceMs) return null
  return `${recordText(standing)} is probed under ${probe.fence} until ${probe.until}, and by another process now`
}

/** Retention counts from settling, or from the claim where the policy says so. */
function retentionIsKept({ before, standing, after, now }: Seen): string | null {
  if (after === null || after === before || (after.state !== 'succeeded' && after.state !== 'failed_terminal'))
    return null
  if (standing?.state === after.state) return null
  const { retainMs, retainFrom } = after.policy
  const untilMs = retainFrom === 'claimed' ? Math.max(now, after.claimedAt + retainMs) : now + retainMs
  return after.expiresAt === untilMs ? null : `${recordText(after)} expires at ${after.expiresAt}, not at ${untilMs}`
}

/** An unknown outcome waits for a resolution, as long as its policy says. */
function unknownWaits({ standing, request, after, now }: Seen): string | null {
  if (standing?.state !== 'unknown' || (request.kind !== 'claim' && request.kind !== 'reconcile')) return null
  if (standing.abandonAt <= now || after?.state === 'unknown') return null
  return `${recordText(standing)} became ${recordText(after)}, ${standing.abandonAt - now} ms too early`
}

/** Recording is not the effect: what returned is recorded as a success, whatever goes wrong with the recording. */
function whatReturnedSucceeds({ life, request, decision }: Seen): string | null {
  if (request.kind !== 'settle' || decision.kind !== 'applied' || request.to.state === 'succeeded') return null
  const { fence } = request.grant
  const returned = [...life.running].some(({ attempt, ended }) => attempt.fence === fence && ended?.how === 'returned')
  return returned ? `the effect under fence ${fence} returned, and was settled as ${request.to.state}` : null
}

/** What time decides: an effect that never began is free again, one that may have happened is unknown. */
function lapseFollowsThePolicy({ standing, request, after, now }: Seen): string | null {
  if (standing?.state !== 'in_progress' || (request.kind !== 'claim' && request.kind !== 'reconcile')) return null
  if (after?.fence !== standing.fence || after.state === 'in_progress') return null
  if (now < standing.leaseUntil + limits.leaseGraceMs) return `${recordText(standing)} lapsed before its time`
  if (isHeld(standing) === (after.state === 'unknown')) return null
  return `${recordText(standing)}, ${standing.started ? 'started' : 'reserved'}, lapsed to ${after.state}`
}

/** Records leave the store only past their end. */
function nothingVanishes({ life, before, now }: Seen): string | null {
  const { last } = life
  if (last === null || before !== null) return null
  if (last.state !== 'in_progress' && last.state !== 'unknown' && last.goneAt <= now) return null
  return `${recordText(last)} is gone before its end`
}

/** Only a reset of the store loses a record, and this world has none. */
function recordIsNeverLost({ request, decision, now }: Seen): string | null {
  if (request.kind !== 'settle' || decision.kind !== 'applied' || !decision.recordLost) return null
  return `the settle under fence ${request.grant.fence}, claimed at ${request.grant.claimedAt}, found no record at ${now}`
}

export const transitionRules: readonly TransitionRule[] = [
  nothingVanishes,
  oneLiveLease,
  fencesOnlyGrow,
  outcomesStay,
  onlyTheFreeIsGranted,
  ownClaimIsRecognised,
  staleSettleChangesNothing,
  onlyTheHolderWrites,
  keyReusedChangesNothing,
  incarnationStays,
  lapseFollowsThePolicy,
  oneProbeAtATime,
  fencesRise,
  fencesAreCompared,
  givenBackStaysGivenBack,
  retentionIsKept,
  unknownWaits,
  whatReturnedSucceeds,
  recordIsNeverLost,
]
