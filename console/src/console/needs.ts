import type { IconName } from '../parts/icons.tsx'
import type { Standing } from './api.ts'

/** Something that needs attention. */
export interface Need {
  readonly title: string
  readonly count: number
  readonly about: string
  readonly page: IconName
  readonly query: Readonly<Record<string, string>>
  /** `bad`: an operator has to act. `warn`: an operator should look. */
  readonly tone: 'bad' | 'warn'
}

/** What needs attention, the gravest first; empty while the store does not answer. */
export function needs(standing: Standing | null): readonly Need[] {
  if (standing === null) return []
  const {
    staleLeases,
    unknownWaiting,
    outbox,
    inboxDeadLetters = {},
    runsStuck = 0,
    runsUnknown = 0,
    runsFailed = 0,
  } = standing
  const givenUp = Object.values(inboxDeadLetters).reduce((sum, count) => sum + count, 0)
  const deadLetters = (outbox?.deadLetters ?? 0) + givenUp
  const all: readonly (Omit<Need, 'tone'> & Partial<Pick<Need, 'tone'>>)[] = [
    {
      title: 'Unknown outcomes, dead letters',
      count: unknownWaiting + runsUnknown + deadLetters,
      about: 'Records, messages and steps that may have happened, and dead letters.',
      page: 'records',
      query: { view: 'unknowns' },
    },
    {
      title: 'Stale leases',
      count: staleLeases,
      about: 'Their holders did not renew them in time.',
      page: 'records',
      query: { view: 'stale' },
    },
    {
      title: 'Stuck runs',
      count: runsStuck,
      about: 'Due, and no worker continues them.',
      page: 'runs',
      query: { stuck: 'true' },
    },
    {
      title: 'Failed runs',
      count: runsFailed,
      about: 'Within the last day. Fix the cause, then resume them.',
      page: 'runs',
      query: { state: 'failed', since: '1d' },
      tone: 'warn',
    },
  ]
  return all.filter(({ count }) => count > 0).map((need) => ({ ...need, tone: need.tone ?? 'bad' }))
}
