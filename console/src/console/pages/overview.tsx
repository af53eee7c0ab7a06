import { useAsk } from '../../parts/ask.ts'
import { ShareBar } from '../../parts/chart.tsx'
import { countText, durationText } from '../../parts/format.ts'
import { addressOf } from '../../parts/router.ts'
import { Empty, Loading } from '../../parts/states.tsx'
import type { Rates, Status } from '../api.ts'
import { type AnswerOf, question } from '../api.ts'
import { growingBacklogs } from '../backlogs.ts'
import { rangeOf, useHistory } from '../history.ts'
import { useLive, useNow } from '../live.ts'
import { needCountText, needs } from '../needs.ts'
import { CardBox, Loaded, Page } from '../page.tsx'
import { recentNeeds } from '../recent.ts'
import { Busiest } from './busiest.tsx'
import { Charts } from './charts.tsx'
import { Doctor } from './doctor.tsx'

/** What needs an operator, and how things went. */
export function OverviewPage({ query }: { readonly query: URLSearchParams }) {
  const [asked, again] = useAsk<AnswerOf<'status'>>(question('/status'))
  const { ticks } = useLive()
  return (
    <Page title="Overview">
      <Loaded asked={asked} again={again}>
        {(status) => (
          <>
            <Needs standing={(ticks.at(-1) ?? status).standing} />
            <Charts range={rangeOf(query.get('range'))} />
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
  const history = useHistory('1h')
  const points = history.kind === 'loaded' ? history.value.points : []
  const growing = growingBacklogs(points)
  if (standing === null) {
    return (
      <section class="card quiet-night">
        <Empty title="Status unknown">The store does not answer. This page retries.</Empty>
      </section>
    )
  }
  const waiting = [...needs(standing), ...recentNeeds(points)].toSorted((a, b) => a.tone.localeCompare(b.tone))
  if (waiting.length + growing.length === 0) {
    // Half of what is watched is in there: nothing is clear before.
    if (history.kind === 'loading') return <Loading />
    return (
      <section class="card quiet-night">
        <Empty title="All clear">
          No unknown outcomes, dead letters, stale leases, failed or stuck runs, late schedules or lost records.
        </Empty>
      </section>
    )
  }
  return (
    <ul class="tiles" aria-label="What needs attention">
      {waiting.map(({ title, count, isMore = false, about, page, query, tone }) => (
        <li key={title}>
          <a class={`card tile ${tone}`} href={addressOf([page], query)}>
            <b>{needCountText({ count, isMore })}</b>
            <span>{title}</span>
            <small>{about}</small>
          </a>
        </li>
      ))}
      {growing.map(({ title, page, unit, from, to }) => {
        const text = unit === 'ms' ? durationText : countText
        return (
          <li key={title}>
            <a class="card tile warn" href={addressOf([page])}>
              <b>{text(to)}</b>
              <span>{title}</span>
              <small>{`From ${text(from)} five minutes ago.`}</small>
            </a>
          </li>
        )
      })}
    </ul>
  )
}

function LastHour({ status: { lastHour, oldestLease, store } }: { readonly status: Status }) {
  const now = useNow()
  return (
    <dl class="facts">
      <dt>First attempts</dt>
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
