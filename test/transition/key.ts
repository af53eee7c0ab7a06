import type { LedgerRecord } from '../../src/core/record.ts'
import { isGone, present } from './deliver.ts'
import type { Process, World } from './world.ts'
import { claimIdOf, TICK } from './world.ts'

/**
 * Two worlds with one key behave alike for ever, so that one of them is explored: processes are interchangeable, times
 * matter by their distance from now, fences and claim ids by whom they belong to. This is what makes an unbounded
 * history finite.
 */
export function keyOf(world: World): string {
  const processes = world.processes.map((process) => processKey(world, process)).toSorted()
  return [recordKey(world), ghostKey(world), ...processes].join(' ')
}

/** Ticks from now: what is further in the past than `least` cannot be told apart by any rule. */
function ticks(at: number, now: number, least = 0): number {
  return Math.max(least, Math.min(FAR, Math.ceil((at - now) / TICK)))
}

const FAR = 4

function recordKey({ stored, now, ghost }: World): string {
  if (stored === null) return '-'
  if (isGone(stored, now)) return 'gone'
  const sameLife = stored.incarnation === ghost.incarnation ? 'L' : ''
  const flags = `${stored.attempts === 0 ? '' : 'g'}${stored.pointer === null ? '' : 'p'}`
  return `${stored.state}${sameLife}${flags}${stateKey(stored, now)}`
}

function stateKey(record: LedgerRecord, now: number): string {
  switch (record.state) {
    case 'in_progress':
      return `${record.started ? 's' : ''}${ticks(record.leaseUntil, now, -1)}`
    case 'succeeded':
    case 'failed_terminal':
      return `${ticks(record.goneAt, now)}`
    case 'failed_retryable':
      return `${record.lapsed ? 'l' : ''}${ticks(record.goneAt, now)},${ticks(record.retryAt, now)}`
    case 'unknown': {
      const probe = record.probe === null ? '' : `p${ticks(record.probe.until, now, -1)}`
      return `${ticks(record.abandonAt, now)},${ticks(record.probeAt, now)}${probe}`
    }
    case 'vacant':
      return `${record.forgotten ? 'f' : ''}${ticks(record.goneAt, now)}`
  }
}

function ghostKey(world: World): string {
  const { stored, now, ghost } = world
  const { actions, probes, probeFence, successUntil } = ghost
  const success = successUntil === null || successUntil <= now ? '' : `s${ticks(successUntil, now)}`
  const probing =
    probeFence === null ? '' : stored?.state === 'unknown' && stored.probe?.fence === probeFence ? 'P' : 'p'
  // The life of a record that is gone is over, and what was known of it does not matter any more.
  const life =
    stored !== null && isGone(stored, now)
      ? ''
      : `${ghost.mayHaveRun ? 'r' : ''}${ghost.incarnation === null ? '' : 'i'}`
  return `${success}${life}${actions}${probes}${probing}`
}

function processKey(world: World, process: Process): string {
  const { now, ghost } = world
  const stored = present(world)
  const { attempt, phase, sentAt, deadline, grant, started, ran, to, revoked, late } = process
  const lateText = late === null ? '' : lateKey(stored, ghost, late)
  // Nobody sends anything for a claim that is over, but for the copy that is still on its way.
  if (phase === 'idle') return `${attempt}idle${lateText}`
  const mine = attempt > 0 && stored?.claimId === claimIdOf(process) ? 'm' : ''
  const ended = attempt > 0 && ghost.lastEnded === claimIdOf(process) ? 'e' : ''
  const head = `${attempt}${phase}${mine}${ended}`
  const times = phase === 'claiming' ? ticks(sentAt, now, -2) : phase === 'holding' ? ticks(deadline, now) : ''
  const grantKey = grant === null ? '' : ownership(stored, ghost.incarnation, grant)
  const flags = `${started ? 's' : ''}${ran ? 'r' : ''}${revoked ? 'x' : ''}${to ?? ''}`
  return `${head}${times}${grantKey}${flags}${lateText}`
}

function ownership(
  stored: LedgerRecord | null,
  life: number | null,
  grant: { fence: number; incarnation: number; claimId: string },
): string {
  const current = stored !== null && stored.fence === grant.fence && stored.claimId === grant.claimId
  return `${current ? 'c' : 'o'}${grant.incarnation === life ? 'L' : ''}`
}

function lateKey(stored: LedgerRecord | null, ghost: World['ghost'], late: NonNullable<Process['late']>): string {
  if (late.kind === 'settle') return `/settle${late.to.state}${ownership(stored, ghost.incarnation, late.grant)}`
  const { claimId } = late
  return `/claim${late.start ? 's' : ''}${stored?.claimId === claimId ? 'm' : ''}${ghost.lastEnded === claimId ? 'e' : ''}`
}
