import { countText } from '../parts/format.ts'
import type { IconName } from '../parts/icons.tsx'
import type { Standing } from './api.ts'

/** Something that needs attention. */
export interface Need {
  readonly title: string
  readonly count: number
  /** Counting stopped there: it may be more. */
  readonly isMore?: boolean
  readonly about: string
  readonly page: IconName
  readonly query: Readonly<Record<string, string>>
  /** `bad`: an operator has to act. `warn`: an operator should look. */
  readonly tone: 'bad' | 'warn'
}

/** The bounds of the alerts. */
const outboxLateMs = 60_000
const scheduleLateMs = 300_000
/** No alert has this one: how long a run may wait in a queue is for its owner to say. */
const queueWaitsMs = 900_000

/** Where the server stops counting: leases are looked through page by page, the outbox counts on. */
const leasesMost = 500
const rowsMost = 10_000
const outboxMost = 100_000

/** As exact as it is known. */
export function needCountText({ count, isMore = false }: Pick<Need, 'count' | 'isMore'>): string {
  return `${countText(count)}${isMore ? '+' : ''}`
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
    schedules = {},
    queues = {},
    claimsAway = false,
  } = standing
  const givenUp = Object.values(inboxDeadLetters).reduce((sum, count) => sum + count, 0)
  const outboxLetters = outbox?.deadLetters ?? 0
  const deadLetters = outboxLetters + givenUp
  const isFull = [unknownWaiting, runsUnknown, givenUp].some((count) => count >= rowsMost)
  const all: readonly (Omit<Need, 'tone'> & Partial<Pick<Need, 'tone'>>)[] = [
    {
      title: 'Unknown outcomes, dead letters',
      count: unknownWaiting + runsUnknown + deadLetters,
      isMore: isFull || outboxLetters >= outboxMost,
      about: 'Records, messages and steps that may have happened, and dead letters.',
      page: 'records',
      query: { view: 'unknowns' },
    },
    {
      title: 'Claims store away',
      count: claimsAway ? 1 : 0,
      about: 'It does not answer: keys are refused, and what it holds is missing here.',
      page: 'overview',
      query: {},
    },
    {
      title: 'Stale leases',
      count: staleLeases,
      isMore: staleLeases >= leasesMost,
      about: 'Their holders did not renew them in time.',
      page: 'records',
      query: { view: 'stale' },
    },
    {
      title: 'Stuck runs',
      count: runsStuck,
      isMore: runsStuck >= rowsMost,
      about: 'Due, and no worker continues them.',
      page: 'runs',
      query: { stuck: 'true' },
    },
    {
      title: 'Outbox is late',
      count: outbox !== undefined && outbox.lagMs > outboxLateMs ? outbox.pending : 0,
      isMore: (outbox?.pending ?? 0) >= outboxMost,
      about: 'Messages wait, and the oldest for more than a minute to be published.',
      page: 'events',
      query: {},
    },
    {
      title: 'Late schedules',
      count: Object.values(schedules).filter(({ lateMs }) => lateMs > scheduleLateMs).length,
      about: 'Their tick is due, and no process starts its run.',
      page: 'runs',
      query: { view: 'schedules' },
    },
    {
      title: 'Waiting queues',
      count: Object.values(queues).filter(({ oldestMs }) => oldestMs > queueWaitsMs).length,
      about: 'A run has waited for a quarter of an hour to be let in.',
      page: 'runs',
      query: { view: 'queues' },
      tone: 'warn',
    },
    {
      title: 'Failed runs',
      count: runsFailed,
      isMore: runsFailed >= rowsMost,
      about: 'Within the last day. Fix the cause, then resume them.',
      page: 'runs',
      query: { state: 'failed', since: '1d' },
      tone: 'warn',
    },
  ]
  return all.filter(({ count }) => count > 0).map((need) => ({ ...need, tone: need.tone ?? 'bad' }))
}
