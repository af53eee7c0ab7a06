import type { HistoryPoint } from 'onceonly/admin'
import type { IconName } from '../parts/icons.tsx'

/** Something that grows faster than it is worked off. */
export interface Backlog {
  readonly title: string
  readonly page: IconName
  readonly unit: '' | 'ms'
  readonly from: number
  readonly to: number
}

/** As many minutes are compared. */
const minutes = 6
/** So many of the five steps between them must go up. */
const risesLeast = 4
/** From the first to the last of them. */
const growthLeast = 1.2

/** What may pile up, and from where on it is worth a look. */
const watched = [
  { gauge: 'pending', title: 'Outbox grows', page: 'events', unit: '', floor: 100 },
  { gauge: 'lagMs', title: 'Outbox falls behind', page: 'events', unit: 'ms', floor: 30_000 },
  { gauge: 'deadLetters', title: 'Dead letters increase', page: 'events', unit: '', floor: 5 },
  { gauge: 'runsStuck', title: 'Stuck runs increase', page: 'runs', unit: '', floor: 5 },
  { gauge: 'queued', title: 'Run queues grow', page: 'runs', unit: '', floor: 100 },
] as const

/** @param points minute by minute, oldest first */
export function growingBacklogs(points: readonly HistoryPoint[]): readonly Backlog[] {
  const last = points.slice(-minutes)
  if (last.length < minutes) return []
  return watched.flatMap(({ gauge, title, page, unit, floor }) => {
    const values = last.map(({ gauges }) => gauges[gauge] ?? 0)
    const [from = 0, to = 0] = [values[0], values.at(-1)]
    const rises = values.filter((value, at) => at > 0 && value > (values[at - 1] ?? 0)).length
    return to >= floor && to >= from * growthLeast && rises >= risesLeast ? [{ title, page, unit, from, to }] : []
  })
}
