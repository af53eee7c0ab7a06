import type { EnqueueOptions } from 'onceonly/run'
import { defineQueue } from 'onceonly/run'
import { MINUTE, SECOND } from '../../../../src/ledger/core/limits.ts'
import type { Random } from '../../../../src/testing/random.ts'
import type { SimulatedDatabase } from './database.ts'
import type { Breaks } from './parts.ts'
import { originOf, type Part } from './program.ts'
import { channelKinds } from './provider.ts'

const [CONCURRENCY, PER_KEY] = [2, 1]
const RATE = { limit: 4, perMs: 12 * MINUTE }

export const line = defineQueue('line', { concurrency: CONCURRENCY, perKey: PER_KEY, rate: RATE })

const ASIDE = 2
/** For children: their parents are in no queue, or in the other one. */
export const aside = defineQueue('aside', { concurrency: ASIDE })

/** How a run is enqueued. */
export type Ticket = Required<Pick<EnqueueOptions<null>, 'key' | 'delayMs' | 'priority'>> &
  Pick<EnqueueOptions<null>, 'dedupKey'>

/** Short runs, more than the queue has places for. */
export function makeQueued(
  random: Random,
  count: number,
): ReadonlyMap<string, { ticket: Ticket; parts: readonly Part[] }> {
  const runs = Array.from({ length: count }, (_, index) => {
    const ticket = {
      key: random.pick(['ann', 'ann', 'bob', 'cat']),
      delayMs: random.pick([0, 0, 0, 9 * MINUTE]),
      priority: random.pick([0, 1, 2]),
      ...random.pick([{}, {}, { dedupKey: 'twins' }]),
    }
    return [`queued ${index}`, { ticket, parts: makeShort(random) }] as const
  })
  return new Map(runs)
}

function makeShort(random: Random): readonly Part[] {
  const send: Part = { kind: 'send', id: 's', channel: random.pick(channelKinds), cursed: random.chance(0.2) }
  const nap: Part = { kind: 'sleep', id: 'n', ms: random.pick([0, 2 * MINUTE]) }
  return random.pick([[send], [send, nap], [nap, send], [{ kind: 'wait', id: 'w', timeoutMs: MINUTE }, send]])
}

interface Row {
  readonly id: string
  readonly key: string
  readonly state: string
  readonly priority: number
  readonly started: number
  readonly ready: number
  readonly continues: string | null
  readonly admitted: number | null
  readonly ended: number | null
}

/** Looks at every commit: the limits of the queue hold at every moment, whatever the rows say about themselves. */
export function watchQueue(database: SimulatedDatabase, tickets: ReadonlyMap<string, Ticket>, breaks: Breaks): void {
  const begun = new Map<string, number>()
  /** One that is resumed after its end begins at once: that is asked for by a person. */
  const over = new Set<string>()
  const times: number[] = []
  const children = `select count(*) as count from onceonly_runs
    where queue = '${aside.name}' and state <> 'queued' and ended_at is null`
  const strays = `select r.id from onceonly_runs r join onceonly_runs p on p.id = r.continues
    where p.queue is not null and (r.queue is null or r.queue_key <> p.queue_key or r.priority <> p.priority
      or coalesce(r.dedup_key, '') <> coalesce(p.dedup_key, ''))`
  const countOf = (text: string) => (database.look(text)[0] as { readonly count: number }).count

  database.watch(() => {
    const rows = database.look(
      `select id, queue_key as key, state, priority, started_at as started, ready_at as ready, continues,
          admitted_at as admitted, ended_at as ended
        from onceonly_runs where queue = '${line.name}' order by started_at`,
    ) as Row[]
    if (countOf(children) > ASIDE) breaks('too_many_at_once', 'children')
    const stray = database.look(strays)[0]
    if (stray !== undefined) breaks('left_its_queue', JSON.stringify(stray))
    const inside = rows.filter(({ state, ended }) => state !== 'queued' && ended === null)
    if (inside.length > CONCURRENCY) breaks('too_many_at_once', JSON.stringify(inside))
    const places = Map.groupBy(inside, ({ key }) => key)
    for (const [key, those] of places) {
      if (those.length > PER_KEY) breaks('too_many_of_a_key', `${key}: ${JSON.stringify(those)}`)
    }
    const fresh = rows.filter(({ id, admitted }) => admitted !== null && begun.get(id) !== admitted).filter(isLetIn)
    if (
      fresh.length > 0 &&
      countOf(`select paused as count from onceonly_run_queues where name = '${line.name}'`) === 1
    )
      breaks('let_in_while_paused', JSON.stringify(fresh))
    for (const row of fresh) sawBegin(row)
    for (const { id, ended } of rows) if (ended !== null) over.add(id)
    const least = Math.min(...fresh.map(({ priority }) => priority))
    const passed = rows.filter(
      (row) => row.state === 'queued' && row.ended === null && row.priority > least && !places.has(row.key),
    )
    const at = Math.min(...fresh.map(({ admitted }) => admitted ?? 0))
    // One that became ready in the middle of it may be late. One that failed before waits for as long as its first begin is counted.
    const late = passed.find(({ ready, admitted }) => admitted === null && ready + SECOND <= at)
    if (late !== undefined) breaks('passed_over', `${JSON.stringify(late)} by ${JSON.stringify(fresh)}`)
  })

  /** One that continues another one has begun with it. */
  function isLetIn({ id, continues, admitted }: Row): boolean {
    if (continues === null || begun.get(continues) !== admitted) return true
    begun.set(id, admitted as number)
    return false
  }

  function sawBegin({ id, started, admitted }: Row): void {
    const at = admitted ?? 0
    begun.set(id, at)
    if (!over.has(id) && at < started + delayOf(id)) breaks('too_early', `${id} at ${at}, entered at ${started}`)
    times.push(at)
    const within = times.filter((time) => time > at - RATE.perMs)
    if (within.length > RATE.limit) breaks('too_fast', `${within.length} runs began: ${within.join(', ')}`)
  }

  const delayOf = (id: string) => tickets.get(originOf(id) ?? '')?.delayMs ?? 0
}
