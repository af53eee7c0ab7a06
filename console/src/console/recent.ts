import type { HistoryPoint } from 'onceonly/admin'
import type { Need } from './needs.ts'

/** A card for what servers counted, or saw for themselves: the store keeps no figure of it. */
interface Watched extends Omit<Need, 'count'> {
  readonly count: (points: readonly HistoryPoint[]) => number
  /** Of points, which are minutes. */
  readonly minutes: number
  /** More than this raises the card. */
  readonly above: number
}

const minuteSeconds = 60

/** How often something happened: a point has it per second. */
const counted = (name: string) => (points: readonly HistoryPoint[]) =>
  Math.round(points.reduce((sum, { perSecond }) => sum + (perSecond[name] ?? 0) * minuteSeconds, 0))

const highest = (name: string) => (points: readonly HistoryPoint[]) =>
  Math.max(0, ...points.map(({ gauges }) => gauges[name] ?? 0))

/** The bounds are those of the alerts. What went wrong for good is shown for an hour, what may be over for minutes. */
const watched: readonly Watched[] = [
  {
    title: 'Records lost',
    count: counted('losses'),
    minutes: 60,
    above: 0,
    about: 'The store no longer has what it acknowledged. The log names what.',
    page: 'overview',
    query: {},
    tone: 'bad',
  },
  {
    title: 'Sent without a lock',
    count: counted('guardErrors'),
    minutes: 60,
    above: 0,
    about: 'The guard could not ask its store. The log names what was sent.',
    page: 'guard',
    query: {},
    tone: 'bad',
  },
  {
    title: 'Region links cut',
    count: highest('linksCut'),
    minutes: 2,
    above: 0,
    about: 'A region leaves another unanswered. It catches up when the network is back.',
    page: 'streams',
    query: {},
    tone: 'bad',
  },
  {
    title: 'Failed sagas',
    count: counted('sagaFailures'),
    minutes: 60,
    above: 0,
    about: 'Instances that ended in a failed state within the last hour.',
    page: 'sagas',
    query: {},
    tone: 'warn',
  },
  {
    title: 'Background work fails',
    count: counted('backgroundFailures'),
    minutes: 15,
    above: 3,
    about: 'Within a quarter of an hour. It is tried again; the log says what fails, and why.',
    page: 'overview',
    query: {},
    tone: 'warn',
  },
  {
    title: 'Keys used again',
    count: highest('keyReuseByOne'),
    minutes: 5,
    above: 20,
    about: 'By one caller, with other payloads, within five minutes.',
    page: 'records',
    query: { view: 'conflicts' },
    tone: 'warn',
  },
  {
    title: 'Early retries',
    count: counted('inProgress'),
    minutes: 5,
    above: 50,
    about: 'Refused within five minutes, because the first attempt still ran.',
    page: 'records',
    query: { view: 'conflicts' },
    tone: 'warn',
  },
  {
    title: 'Pending duplicates',
    count: highest('pendingByOne'),
    minutes: 5,
    above: 20,
    about: 'Of one workspace within five minutes, before their original was answered.',
    page: 'guard',
    query: {},
    tone: 'warn',
  },
]

/** @param points minute by minute, oldest first */
export function recentNeeds(points: readonly HistoryPoint[]): readonly Need[] {
  return watched.flatMap(({ count, minutes, above, ...need }) => {
    const seen = count(points.slice(-minutes))
    return seen > above ? [{ ...need, count: seen }] : []
  })
}
