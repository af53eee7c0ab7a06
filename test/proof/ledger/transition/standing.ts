import { DAY, limits } from '../../../../src/ledger/core/limits.ts'
import type { LedgerRecord } from '../../../../src/ledger/core/record.ts'
import type { Scene, World } from '../../../support/ledger/transition/world.ts'
import {
  claimIdOf,
  claimOf,
  holderRequests,
  LEASE_MS,
  releaseOf,
  strangersClaim,
  TICK,
} from '../../../support/ledger/transition/world.ts'
import { present, Violation } from './deliver.ts'

/** What must hold in every world that can be reached, whatever happens next. */
export function checkStanding(scene: Scene, world: World): void {
  checkReusedKey(scene, world)
  checkStaleHolders(scene, world)
  checkOwnClaims(scene, world)
  checkEffects(world)
  checkNothingBlocks(scene, world)
}

function checkReusedKey(scene: Scene, world: World): void {
  const record = present(world)
  if (record === null || record.state === 'vacant') return
  const { decision, record: after } = decide(scene, world, strangersClaim(scene, 'v1:1:other'))
  if (decision.kind !== 'key_reused') throw new Violation(`a reused key was answered ${decision.kind}`)
  if (after !== world.stored) throw new Violation('a reused key changed the record')
}

/** Fence and claim id decide, so a request that lacks either can only leave a line in the history. */
function checkStaleHolders(scene: Scene, world: World): void {
  const record = present(world)
  if (record === null) return
  for (const { grant } of world.processes) {
    if (grant === null || (grant.fence === record.fence && grant.claimId === record.claimId)) continue
    for (const request of holderRequests(grant)) {
      const { decision, record: after } = decide(scene, world, request)
      if (decision.kind !== 'lease_lost') throw new Violation(`a stale ${request.kind} was answered ${decision.kind}`)
      if (!sameButHistory(record, after)) throw new Violation(`a stale ${request.kind} changed the record`)
    }
  }
  for (const process of world.processes) {
    if (process.attempt === 0 || record.claimId === claimIdOf(process)) continue
    const { record: after } = decide(scene, world, releaseOf(scene, process))
    if (after !== world.stored) throw new Violation('a stale release changed the record')
  }
}

function checkOwnClaims(scene: Scene, world: World): void {
  const record = present(world)
  if (record?.state !== 'in_progress') return
  for (const process of world.processes) {
    if (process.attempt === 0 || record.claimId !== claimIdOf(process)) continue
    const { decision } = decide(scene, world, claimOf(scene, process))
    const known = decision.kind === 'first_attempt' || decision.kind === 'reclaimed'
    if (!known || decision.lease.fence !== record.fence) throw new Violation('an own claim was not recognised')
  }
}

/** The end of it all: the effects themselves, as the world outside sees them. */
function checkEffects({ processes, now }: World): void {
  const running = processes.filter((each) => each.phase === 'holding' && each.ran && !each.revoked)
  const live = running.filter((each) => now < each.deadline)
  if (live.length > 1) throw new Violation('two effects run under live leases')
}

const LONGEST = 3

/** Whatever happened and whichever process died: a new claim is blocked for a lease and its grace at most. */
function checkNothingBlocks(scene: Scene, world: World): void {
  const lapsed = { ...world, now: world.now + LEASE_MS + limits.leaseGraceMs }
  const soon = decide(scene, lapsed, strangersClaim(scene)).decision
  if (soon.kind === 'in_progress') throw new Violation('a lapsed lease still blocks newcomers')
  const record = present(world)
  if (record?.state === 'in_progress' && !record.started && soon.kind !== 'reclaimed') {
    throw new Violation(`a lapsed reservation was answered ${soon.kind}`)
  }
  let later = world
  for (let rounds = 0; rounds < LONGEST; rounds++) {
    const aged = { ...later, now: later.now + 2 * DAY + TICK }
    const { record: stored } = decide(scene, aged, { kind: 'reconcile', id: 'record' })
    later = { ...aged, stored }
  }
  const { decision } = decide(scene, later, strangersClaim(scene))
  if (decision.kind !== 'first_attempt') throw new Violation(`long after everything, a claim gets ${decision.kind}`)
}

/** What the machine would do, without any of the bookkeeping: nothing of it happens. */
function decide(scene: Scene, { stored, now, fence }: World, request: Parameters<Scene['machine']>[1]) {
  return scene.machine(stored, request, { now, fence: fence + 1 })
}

/** Shallow on purpose: an unchanged record keeps its very fields. */
function sameButHistory(before: LedgerRecord, after: LedgerRecord | null): boolean {
  if (after === before || after === null) return after === before
  const names = Object.keys(after) as (keyof LedgerRecord)[]
  return (
    names.length === Object.keys(before).length &&
    names.every((name) => name === 'history' || after[name] === before[name])
  )
}
