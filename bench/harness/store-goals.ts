import type { Goal, Wanted } from './compare.ts'

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
