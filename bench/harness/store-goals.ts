import type { Bench } from './bench.ts'
import type { Comparison, Goal, Wanted } from './compare.ts'
import { byTurns } from './compare.ts'
import type { Figures } from './figures.ts'

export interface StoreGoals {
  readonly throughput: Goal
  readonly p99?: Goal
}

/** What is compared of every store; figures that a side does not have are left out of the table. */
export function wantedOfStore({ throughput, p99 }: StoreGoals): Wanted[] {
  return [
    { figure: 'requestsPerS', label: 'requests/s', of: 'ratio', goal: throughput },
    { figure: 'p50Ms', label: 'median ms', of: 'ratio' },
    { figure: 'p99Ms', label: 'p99 ms', of: 'ratio', ...(p99 === undefined ? {} : { goal: p99 }) },
    { figure: 'cpuUs', label: 'CPU µs per request', of: 'ratio' },
    { figure: 'serverCpuUs', label: 'server CPU µs per request', of: 'ratio' },
  ]
}

/** A crowd of callers on a store: each side of a pair in a process and on a store of its own. */
export async function compareCrowd(
  { compare }: Bench,
  callers: number,
  about: Pick<Comparison, 'ours' | 'other' | 'pairs'>,
  sides: { ours(): Promise<Figures>; other(): Promise<Figures> },
  goals: StoreGoals,
): Promise<void> {
  const measure = byTurns(sides.ours, sides.other)
  await compare({ name: `${callers} callers`, ...about, measure, wanted: wantedOfStore(goals) })
}
