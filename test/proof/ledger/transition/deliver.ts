import type { LedgerRecord } from '../../../../src/ledger/core/record.ts'
import { goneAtOf } from '../../../../src/ledger/core/record.ts'
import type { Decision, DecisionOf, Grant, Request, SettleRequest } from '../../../../src/ledger/core/request.ts'
import type { Ghost, Process, Scene, World } from '../../../support/ledger/transition/world.ts'
import { RETAIN_TICKS, TICK } from '../../../support/ledger/transition/world.ts'

/** A promise of the ledger that the machine under examination broke. */
export class Violation extends Error {}

export interface Delivered<D extends Decision = Decision> {
  readonly world: World
  readonly decision: D
}

/** The store decides a request. What it did is checked here; what became known of it is the caller's step. */
export function deliver<R extends Request>(
  scene: Scene,
  world: World,
  request: R,
  sender: Process | null,
): Delivered<DecisionOf<R>>
export function deliver(scene: Scene, earlier: World, request: Request, sender: Process | null): Delivered {
  const world = aged(earlier)
  const at = { now: world.now, fence: world.fence + 1 }
  const { record, decision } = scene.machine(world.stored, request, at)
  checkFences(world, record, decision)
  const grant = grantIn(decision)
  if (grant !== null) checkGrant(scene, world, request, grant, sender)
  if (raisesFence(world, request, decision) && record?.fence !== at.fence) {
    throw new Violation(`${request.kind} did not raise the fence`)
  }
  if (request.kind === 'settle') checkSettle(world, request, record, decision)
  const ghost = nextGhost(world, { request, decision, record, grant })
  const processes = decision.kind === 'done' && takesAway(request) ? revoke(world) : world.processes
  return { world: { ...world, fence: at.fence, stored: record, ghost, processes }, decision }
}

export function isGone(record: LedgerRecord, now: number): boolean {
  const goneAt = goneAtOf(record)
  return goneAt !== null && goneAt <= now
}

/** The record as a reader sees it: an expired one is absent. */
export function present({ stored, now }: World): LedgerRecord | null {
  return stored === null || isGone(stored, now) ? null : stored
}

/** An expired record is gone: a later claim is a new command. */
export function aged(world: World): World {
  if (world.stored === null || !isGone(world.stored, world.now)) return world
  return { ...world, ghost: { ...world.ghost, mayHaveRun: false, incarnation: null, lastEnded: null } }
}

function grantIn(decision: Decision): Grant | null {
  return decision.kind === 'first_attempt' || decision.kind === 'reclaimed' ? decision.lease : null
}

function checkFences(world: World, after: LedgerRecord | null, decision: Decision): void {
  const before = present(world)
  if (before !== null && after !== null && after.fence < before.fence) throw new Violation('a fence went back')
  if (before !== null && after === null) throw new Violation('a record that was there is gone')
  const fresh = decision.kind === 'probe_granted' ? decision.fence : null
  if (fresh !== null && fresh <= world.fence && fresh !== world.ghost.probeFence) {
    throw new Violation('a probe was granted under an old fence')
  }
}

function checkGrant(scene: Scene, world: World, request: Request, grant: Grant, sender: Process | null): void {
  const { ghost, now } = world
  const before = present(world)
  const claimId = request.kind === 'claim' ? request.claimId : null
  const own = before?.state === 'in_progress' && before.claimId === claimId
  if (grant.claimId !== claimId) throw new Violation('a lease was granted to another claim')
  if (own && grant.fence !== before.fence) throw new Violation('an own claim, repeated, got another fence')
  if (!own && grant.fence !== world.fence + 1) throw new Violation('a grant did not raise the fence')
  if (ghost.lastEnded === claimId) throw new Violation('a claim that its holder had ended came to life again')
  if (ghost.successUntil !== null && now < ghost.successUntil) {
    throw new Violation('granted after a recorded success, inside retention')
  }
  for (const other of world.processes) {
    const live = other.phase === 'holding' && now < other.deadline && !other.revoked
    if (live && other.index !== sender?.index) throw new Violation('two live leases')
  }
  if (!own && ghost.mayHaveRun && scene.policy.onAbandoned !== 'rerun') {
    throw new Violation('granted although an effect that is not safe to repeat may have happened')
  }
  if (ghost.incarnation !== null && grant.incarnation !== ghost.incarnation) {
    throw new Violation('effect keys changed within one life of the record')
  }
}

/** Taking a record from its holder makes the holder stale. */
function raisesFence(world: World, request: Request, decision: Decision): boolean {
  if (decision.kind === 'abandoned') return true
  if (request.kind === 'release') return decision.kind === 'applied' && present(world)?.state === 'in_progress'
  if (request.kind === 'resolve') return decision.kind === 'done' && request.to.kind !== 'cannot_tell'
  return request.kind === 'forget' && decision.kind === 'done'
}

function checkSettle(world: World, request: SettleRequest, after: LedgerRecord | null, decision: Decision): void {
  const before = present(world)
  const { grant, to } = request
  // No store forgets anything here: what is not there has expired, and stays so.
  if (decision.kind === 'applied' && decision.recordLost) throw new Violation('an expired record was brought back')
  if (before === null || before.fence !== grant.fence || before.claimId !== grant.claimId) return
  const open = before.state === 'in_progress' || before.state === 'unknown'
  const lapsed = before.state === 'failed_retryable' && before.lapsed
  if (!open && !lapsed) return
  if (decision.kind !== 'applied') throw new Violation('the holder could not settle')
  if (after?.state !== to.state) throw new Violation('a settle under the current fence was not recorded')
}

interface Happened {
  readonly request: Request
  readonly decision: Decision
  readonly record: LedgerRecord | null
  readonly grant: Grant | null
}

function nextGhost(world: World, { request, decision, record, grant }: Happened): Ghost {
  const before = present(world)
  let ghost = world.ghost
  const settledNow = record !== null && record.state === 'succeeded' && before?.state !== 'succeeded'
  if (settledNow && !isGone(record, world.now)) {
    checkRetention(record, world.now)
    ghost = { ...ghost, successUntil: world.now + RETAIN_TICKS * TICK }
  }
  // What an attempt has named is known to be there, or to come.
  if (decision.kind === 'applied' && request.kind === 'attach') ghost = { ...ghost, mayHaveRun: true }
  if (decision.kind === 'applied' && request.kind === 'release') ghost = { ...ghost, lastEnded: request.claimId }
  if (decision.kind === 'applied' && request.kind === 'settle') {
    const mayHaveRun = ghost.mayHaveRun && request.to.state !== 'failed_retryable'
    ghost = { ...ghost, mayHaveRun, lastEnded: request.grant.claimId }
  }
  if (grant !== null && grant.claimId !== ghost.lastEnded) ghost = { ...ghost, lastEnded: null }
  if (decision.kind === 'probe_granted') {
    ghost = { ...ghost, probes: ghost.probes + 1, probeFence: decision.fence }
  }
  if (decision.kind === 'done') ghost = afterOperator(ghost, request)
  return ghost
}

function afterOperator(ghost: Ghost, request: Request): Ghost {
  if (request.kind === 'resolve') {
    const mayHaveRun = ghost.mayHaveRun && request.to.kind !== 'rerun'
    const actions = ghost.actions + (request.probeFence === null ? 1 : 0)
    return { ...ghost, actions, mayHaveRun }
  }
  if (request.kind !== 'forget') return ghost
  const over = { mayHaveRun: false, successUntil: null, actions: ghost.actions + 1 }
  return request.onlyRunning ? { ...ghost, ...over } : { ...ghost, ...over, incarnation: null }
}

function checkRetention(record: LedgerRecord & { state: 'succeeded' }, now: number): void {
  if (record.expiresAt !== now + RETAIN_TICKS * TICK) throw new Violation('retention does not count from settling')
}

function takesAway(request: Request): boolean {
  return request.kind === 'forget' || (request.kind === 'resolve' && request.to.kind === 'rerun')
}

/** Another process took the record from its holders; the fence stops their writes, but nothing stops their effects. */
function revoke(world: World): readonly Process[] {
  return world.processes.map((each) => (each.phase === 'holding' ? { ...each, revoked: true } : each))
}
