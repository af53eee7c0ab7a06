import { setTimeout as sleep } from 'node:timers/promises'
import type { LedgerEvent } from 'onceonly'
import { createLedger, HOUR, MINUTE } from 'onceonly'
import type { Address } from '../../support/place.ts'
import { openStore, who } from '../../support/place.ts'
import { listen, readTask, report } from '../crash/member.ts'
import { jumpBy } from './skew.ts'

/** A process on a host whose wall clock is wrong and jumps. */
export interface SkewedTask {
  readonly address: Address
  /** Whether an effect outlives its lease there; that takes a few seconds. */
  readonly long: boolean
}

export interface SkewedReport {
  readonly kind: 'report'
  readonly wallMs: number
  readonly long: string
  readonly theirs: string
  readonly kept: string
  readonly events: readonly LedgerEvent['kind'][]
}

export const long = { name: 'long', effect: 'external', leaseMs: 2_500 } as const
export const plain = {
  name: 'plain',
  effect: 'repeatable',
  whileRunning: 'conflict',
  retainMs: 10 * MINUTE,
} as const

async function main({ address, long: isLong }: SkewedTask): Promise<void> {
  listen()
  const events: LedgerEvent['kind'][] = []
  const { store } = openStore(address)
  const once = createLedger({ store, background: false, on: ({ kind }) => events.push(kind) })
  const operation = once.operation(plain)
  // An effect that outlives several leases, while the clock jumps back and forth.
  const keys = new Set<string>()
  const running = await once.operation(long).execute(who('long'), 1, async (attempt) => {
    for (const ms of [HOUR, -2 * HOUR, HOUR]) {
      jumpBy(ms)
      if (isLong) await sleep(1_000)
      keys.add(attempt.effectKey)
    }
    return `ran through with ${keys.size} key`
  })
  // The live lease of another process: not ours, whatever our clock says; nor is it lapsed, nor swept.
  const theirs = await operation.execute(who('theirs'), 1, () => 'stolen')
  await once.upkeep.reconcile()
  await once.upkeep.sweep()
  const kept = await operation.execute(who('kept'), 1, () => 'kept')
  await operation.claim(who('abandoned'), 1)
  const textOf = (answer: typeof kept) => ('value' in answer ? `${answer.kind} ${answer.value}` : answer.error.code)
  report<SkewedReport>({
    kind: 'report',
    wallMs: Date.now(),
    long: textOf(running),
    theirs: textOf(theirs),
    kept: textOf(kept),
    events,
  })
  await sleep(MINUTE)
}

if (import.meta.main) await main(readTask<SkewedTask>())
