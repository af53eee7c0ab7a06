import { useAsk } from '../../parts/ask.ts'
import { LineChart, type Series, ShareBar } from '../../parts/chart.tsx'
import { agoText, countText, durationText } from '../../parts/format.ts'
import { addressOf } from '../../parts/router.ts'
import { Empty } from '../../parts/states.tsx'
import type { Rates, Status } from '../api.ts'
import { type AnswerOf, question } from '../api.ts'
import { useLive, useNow } from '../live.ts'
import { needs } from '../needs.ts'
import { CardBox, Loaded, Page } from '../page.tsx'
import { Busiest } from './busiest.tsx'
import { Doctor } from './doctor.tsx'

/** Live rates, and what needs an operator. */
export function OverviewPage() {
  const [asked, again] = useAsk<AnswerOf<'status'>>(question('/status'))
  const { ticks } = useLive()
  return (
    <Page title="Overview">
      <Loaded asked={asked} again={again}>
        {(status) => (
          <>
            <Needs standing={(ticks.at(-1) ?? status).standing} />
            <Charts ticks={ticks} />
            <div class="columns">
              <CardBox title="Records by state">
                <ShareBar
                  parts={[
                    { name: 'succeeded', count: status.states.succeeded, colour: 1 },
                    { name: 'in progress', count: status.states.in_progress, colour: 2 },
                    { name: 'failed, retryable', count: status.states.failed_retryable, colour: 3 },
                    { name: 'unknown', count: status.states.unknown, colour: 4 },
                    { name: 'failed', count: status.states.failed_terminal, colour: 5 },
                  ]}
                />
              </CardBox>
              <CardBox title="The last hour">
                <LastHour status={status} />
              </CardBox>
            </div>
          </>
        )}
      </Loaded>
      <div class="columns">
        <Busiest />
        <Doctor />
      </div>
    </Page>
  )
}

function Needs({ standing }: { readonly standing: Rates['standing'] }) {
  if (standing === null) {
    return (
      <section class="card quiet-night">
        <Empty title="Status unknown">The store does not answer. This page retries.</Empty>
      </section>
    )
  }
  const waiting = needs(standing)
  if (waiting.length === 0) {
    return (
      <section class="card quiet-night">
        <Empty title="All clear">No unknown outcomes, stale leases, dead letters or stuck runs.</Empty>
      </section>
    )
  }
  return (
    <ul class="tiles" aria-label="What needs attention">
      {waiting.map(({ title, count, about, page, query }) => (
        <li key={title}>
          <a class="card tile bad" href={addressOf([page], query)}>
            <b>{countText(count)}</b>
            <span>{title}</span>
            <small>{about}</small>
          </a>
        </li>
      ))}
    </ul>
  )
}

const decisions: readonly (Pick<Series, 'colour' | 'name'> & { readonly member: string })[] = [
  { name: 'claims granted', member: 'claims', colour: 1 },
  { name: 'replays', member: 'replays', colour: 2 },
  { name: 'in progress', member: 'inProgress', colour: 3 },
  { name: 'guard: blocked', member: 'guardBlocked', colour: 4 },
  { name: 'key reused', member: 'conflicts', colour: 5 },
]

const latencies: readonly (Pick<Series, 'colour' | 'name'> & { readonly member: keyof Rates['latencyMs'] })[] = [
  { name: 'request', member: 'request', colour: 1 },
  { name: 'claim', member: 'claim', colour: 2 },
  { name: 'effect', member: 'effect', colour: 3 },
]

function Charts({ ticks }: { readonly ticks: readonly Rates[] }) {
  const now = ticks.at(-1)?.at ?? 0
  const timeOf = (at: number) => agoText(ticks[at]?.at ?? now, now)
  const lag: Series = { name: 'lag', colour: 3, values: ticks.map(({ standing }) => standing?.outbox?.lagMs ?? 0) }
  return (
    <div class="columns three">
      <section class="card body">
        <LineChart
          title="Decisions per second"
          timeOf={timeOf}
          series={decisions.map(({ member, ...look }) => ({
            ...look,
            values: ticks.map(({ perSecond }) => perSecond[member] ?? 0),
          }))}
        />
      </section>
      <section class="card body">
        <LineChart
          title="Latency, mean"
          unit=" ms"
          timeOf={timeOf}
          series={latencies.map(({ member, ...look }) => ({
            ...look,
            values: ticks.map(({ latencyMs }) => latencyMs[member] ?? 0),
          }))}
        />
      </section>
      <section class="card body">
        <LineChart title="Outbox lag" unit=" ms" timeOf={timeOf} series={[lag]} />
      </section>
    </div>
  )
}

function LastHour({ status: { lastHour, oldestLease, store } }: { readonly status: Status }) {
  const now = useNow()
  return (
    <dl class="facts">
      <dt>Claims granted</dt>
      <dd>{countText(lastHour.claims)}</dd>
      <dt>Replays</dt>
      <dd>{countText(lastHour.replays)}</dd>
      <dt>Refused while running</dt>
      <dd>{countText(lastHour.inProgress)}</dd>
      <dt>Refused for another payload</dt>
      <dd>{countText(lastHour.conflicts)}</dd>
      <dt>Longest under way</dt>
      <dd>
        {oldestLease === null ? (
          'nothing'
        ) : (
          <a href={addressOf(['records', oldestLease.id])}>
            {`${oldestLease.identity.operation}, for ${durationText(now - oldestLease.claimedAt)}`}
          </a>
        )}
      </dd>
      <dt>Store</dt>
      <dd>{store}</dd>
    </dl>
  )
}
