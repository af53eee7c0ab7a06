import { loadavg } from 'node:os'
import type { Figures, Pair } from './figures.ts'
import type { Estimate } from './statistics.ts'
import { estimate, median } from './statistics.ts'

/** Two things that are measured by turns; or one, where the figure is not a ratio. */
export interface Comparison {
  readonly name: string
  /** At least 15 where a round is short, 5 where it is long. */
  readonly pairs: number
  /** For people: what is compared with what. */
  readonly ours: string
  readonly other: string | null
  /** One pair. The order alternates: whatever grows or tires over time meets both sides alike. */
  measure(oursFirst: boolean): Promise<Pair>
  readonly wanted: readonly Wanted[]
}

/** A pair of rounds, one after the other. */
export function byTurns(ours: () => Promise<Figures>, other: () => Promise<Figures>): Comparison['measure'] {
  return async (oursFirst) => {
    if (oursFirst) return { ours: await ours(), other: await other() }
    const first = await other()
    return { ours: await ours(), other: first }
  }
}

/** A figure to print, and what it has to reach if it has to reach anything. */
export interface Wanted {
  readonly figure: string
  readonly label: string
  /** Ours ÷ other, pair by pair; or ours as it is. */
  readonly of: 'ratio' | 'ours'
  readonly goal?: Goal
}

export type Goal = { readonly atLeast: number } | { readonly atMost: number }

export interface Row {
  readonly comparison: string
  readonly label: string
  readonly of: Wanted['of']
  readonly ours: number
  readonly other: number | null
  readonly estimate: Estimate
  readonly goal: Goal | null
  readonly pass: boolean
}

/** @param cut what was measured until it fires is still reported */
export async function compare(
  comparison: Comparison,
  progress: (line: string) => void,
  cut: AbortSignal | null = null,
): Promise<Row[]> {
  const pairs: Pair[] = []
  try {
    for (let index = 0; index < comparison.pairs && cut?.aborted !== true; index++) {
      pairs.push(await comparison.measure(index % 2 === 0))
      progress(progressLine(comparison, pairs))
    }
  } catch (error) {
    if (cut?.aborted !== true) throw error
  }
  if (pairs.length === 0) return []
  return comparison.wanted.filter((wanted) => isThere(wanted, pairs)).map((wanted) => rowOf(comparison, wanted, pairs))
}

function isThere({ figure, of }: Wanted, pairs: readonly Pair[]): boolean {
  return pairs.every(({ ours, other }) => figure in ours && (of === 'ours' || (other !== null && figure in other)))
}

function rowOf({ name }: Comparison, wanted: Wanted, pairs: readonly Pair[]): Row {
  const { figure, label, of, goal = null } = wanted
  const ours = pairs.map((pair) => pair.ours[figure] as number)
  const other = pairs.flatMap((pair) => pair.other?.[figure] ?? [])
  const samples = of === 'ours' ? ours : ours.map((value, index) => value / (other[index] as number))
  const estimated = estimate(samples)
  return {
    comparison: name,
    label,
    of,
    ours: median(ours),
    other: other.length === 0 ? null : median(other),
    estimate: estimated,
    goal,
    pass: goal === null || reaches(estimated, goal),
  }
}

/** The bound that is against us decides, not the median. */
export function decidingBound({ low, high }: Estimate, goal: Goal): number {
  return 'atLeast' in goal ? low : high
}

function reaches(estimated: Estimate, goal: Goal): boolean {
  const bound = decidingBound(estimated, goal)
  return 'atLeast' in goal ? bound >= goal.atLeast : bound <= goal.atMost
}

function progressLine({ name, pairs: total, wanted }: Comparison, pairs: readonly Pair[]): string {
  const { ours, other } = pairs.at(-1) as Pair
  const said = wanted
    .filter(({ goal, figure }) => goal !== undefined && figure in ours)
    .map(({ figure, label }) => {
      const mine = ours[figure] as number
      const theirs = other?.[figure]
      const ratio = theirs === undefined ? '' : ` : ${number(theirs)} = ${number(mine / theirs)}`
      return `${label} ${number(mine)}${ratio}`
    })
  const unit = other === null ? 'round' : 'pair'
  return `${name}, ${unit} ${pairs.length}/${total}: ${said.join(', ')} (load ${(loadavg()[0] ?? 0).toFixed(1)})`
}

/** More than three digits are noise on a shared machine. */
export function number(value: number): string {
  if (Math.abs(value) >= 1_000) return Math.round(value).toLocaleString('en-US').replaceAll(',', ' ')
  return String(Number(value.toPrecision(3)))
}
