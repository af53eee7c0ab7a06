import type { LedgerRecord } from '../../../../src/ledger/core/record.ts'
import type { Process, World } from '../../../support/ledger/transition/world.ts'
import { claimIdOf, TICK } from '../../../support/ledger/transition/world.ts'
import { isGone, present } from './deliver.ts'

/** How many different records with their ghosts, and how many different processes, one exploration may come across. */
const HEADS = 2 ** 17
const SEATS = 2 ** 12

/**
 * Two worlds with one key behave alike forever, so that one of them is explored: processes are interchangeable, times
 * matter by their distance from now, fences and claim ids by their owner. This is what makes an unbounded
 * history finite. Keys are numbers, because tens of millions of them are made, and most of the time goes into them:
 * whatever differs is numbered as it comes, and four such numbers fit into one.
 */
export function createKeys(): (world: World) => number {
  const heads = createNumbering<string>(HEADS)
  const seats = createNumbering<number>(SEATS)
  let latest: { world: World; head: number } | null = null
  return (world) => {
    const stored = present(world)
    // Many steps leave the record alone, and come one after the other.
    if (latest === null || !sameHead(latest.world, world)) {
      latest = { world, head: heads(`${recordKey(world)} ${ghostKey(world)}`) }
    }
    let key = latest.head
    const processes = world.processes.map((process) => seats(processCode(world, stored, process)))
    for (const seat of processes.sort(ascending)) key = key * SEATS + seat
    return key
  }
}

/** One of each kind: processes that a key does not distinguish are interchangeable. */
export function differentProcesses(world: World): readonly Process[] {
  const stored = present(world)
  const codes = world.processes.map((process) => processCode(world, stored, process))
  return world.processes.filter((_process, at) => codes.indexOf(codes[at] ?? -1) === at)
}

function sameHead(a: World, b: World): boolean {
  return a.stored === b.stored && a.ghost === b.ghost && a.now === b.now
}

const ascending = (a: number, b: number) => a - b

function createNumbering<T>(most: number): (value: T) => number {
  const numbers = new Map<T, number>()
  return (value) => {
    const known = numbers.get(value)
    if (known !== undefined) return known
    if (numbers.size === most) throw new Error(`A key has no room for more than ${most} of these`)
    numbers.set(value, numbers.size)
    return numbers.size - 1
  }
}

/** Ticks from now: what is further in the past than `least` is equal for every rule. */
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

const PHASES = { idle: 0, claiming: 1, holding: 2, settling: 3, releasing: 4 } as const
const SETTLEMENTS = { succeeded: 0, failed_terminal: 1, failed_retryable: 2, unknown: 3 } as const
const bit = (is: boolean) => (is ? 1 : 0)

/** One digit for everything that matters of a process, each to a base of its own. */
function processCode({ now, ghost }: World, stored: LedgerRecord | null, process: Process): number {
  const { attempt, phase, sentAt, deadline, grant, started, ran, to, revoked, late } = process
  const head = (attempt * 5 + PHASES[phase]) * 25 + (late === null ? 0 : lateCode(stored, ghost, late))
  // Nothing is sent for a claim that is over, except a copy that is still on its way.
  if (phase === 'idle') return head * ACTIVE
  const claimId = attempt > 0 ? claimIdOf(process) : null
  const mine = claimId !== null && stored?.claimId === claimId
  const ended = claimId !== null && ghost.lastEnded === claimId
  const time = phase === 'claiming' ? ticks(sentAt, now, -2) + 2 : phase === 'holding' ? ticks(deadline, now) : 0
  const owned = grant === null ? 4 : ownership(stored, ghost.incarnation, grant)
  const flags = bit(mine) + 2 * bit(ended) + 4 * bit(started) + 8 * bit(ran) + 16 * bit(revoked)
  const active = ((flags * 7 + time) * 5 + owned) * 5 + (to === null ? 4 : SETTLEMENTS[to])
  return head * ACTIVE + active
}

/** The room that the digits of an active process take. */
const ACTIVE = 32 * 7 * 5 * 5

function ownership(
  stored: LedgerRecord | null,
  life: number | null,
  grant: { fence: number; incarnation: number; claimId: string },
): number {
  const current = stored !== null && stored.fence === grant.fence && stored.claimId === grant.claimId
  return bit(current) + 2 * bit(grant.incarnation === life)
}

/** Nothing is on its way: zero; one to eight: a claim; then the settles. */
function lateCode(stored: LedgerRecord | null, ghost: World['ghost'], late: NonNullable<Process['late']>): number {
  if (late.kind === 'settle') {
    return 9 + SETTLEMENTS[late.to.state] * 4 + ownership(stored, ghost.incarnation, late.grant)
  }
  const { claimId, start } = late
  return 1 + bit(start) + 2 * bit(stored?.claimId === claimId) + 4 * bit(ghost.lastEnded === claimId)
}
