import type { HistoryPoint } from 'onceonly/admin'
import { useMemo, useState } from 'preact/hooks'
import { LineChart } from '../../parts/chart.tsx'
import { ExportButtons } from '../../parts/export-button.tsx'
import { agoText } from '../../parts/format.ts'
import { addressOf, navigate } from '../../parts/router.ts'
import type { Series } from '../../parts/series.ts'
import { Failed } from '../../parts/states.tsx'
import { pointOf, type Range, ranges, rangeTexts, useHistory } from '../history.ts'
import { useLive } from '../live.ts'

/** How decisions, latencies and backlogs went. The address has the range, so that it can be sent to a colleague. */
export function Charts({ range }: { readonly range: Range }) {
  const { ticks } = useLive()
  const asked = useHistory(range === 'live' ? '1h' : range)
  const kept = asked.kind === 'loaded' ? asked.value.points : []
  const points = range === 'live' ? ticks.map(pointOf) : kept
  return (
    <section class="stack" aria-label="Charts" {...(asked.kind === 'loading' ? { 'aria-busy': true } : {})}>
      <div class="ranges">
        <div class="choice" role="group" aria-label="Time range">
          {ranges.map((each) => (
            <button
              key={each}
              type="button"
              aria-pressed={each === range}
              onClick={() => navigate(addressOf([], { range: each === '1h' ? '' : each }), 'replace')}
            >
              {rangeTexts[each]}
            </button>
          ))}
        </div>
        <span class="faint">{range === 'live' ? 'This server, since you opened the page' : 'All servers'}</span>
        <ExportButtons name={`history-${range}`} rows={async () => points} />
      </div>
      {asked.kind === 'failed' && range !== 'live' ? <Failed message={asked.message} /> : <Lines points={points} />}
    </section>
  )
}

type Look = Pick<Series, 'colour' | 'name'> & { readonly member: string }

const decisions: readonly Look[] = [
  { name: 'first attempts', member: 'claims', colour: 1 },
  { name: 'replays', member: 'replays', colour: 2 },
  { name: 'joined', member: 'joined', colour: 6 },
  { name: 'in progress', member: 'inProgress', colour: 3 },
  { name: 'guard: blocked', member: 'guardBlocked', colour: 4 },
  { name: 'key reused', member: 'conflicts', colour: 5 },
]

const percentiles = [
  { name: 'p50', member: 'p50', colour: 1 },
  { name: 'p95', member: 'p95', colour: 3 },
  { name: 'p99', member: 'p99', colour: 5 },
  { name: 'mean', member: 'mean', colour: 6 },
] as const

const backlogs: readonly Look[] = [
  { name: 'outbox', member: 'pending', colour: 1 },
  { name: 'dead letters', member: 'deadLetters', colour: 5 },
  { name: 'unknown', member: 'unknown', colour: 4 },
]

const latencies = { request: 'Requests', claim: 'Claims', effect: 'Effects' } as const
type Latency = keyof typeof latencies

function Lines({ points }: { readonly points: readonly HistoryPoint[] }) {
  const [latency, setLatency] = useState<Latency>('request')
  const times = useMemo(() => points.map(({ at }) => at), [points])
  const now = times.at(-1) ?? 0
  const timeOf = (at: number) => agoText(times[at] ?? now, now)
  return (
    <div class="columns three">
      <section class="card body">
        <LineChart
          title="Decisions per second"
          times={times}
          timeOf={timeOf}
          series={decisions.map(({ member, ...look }) => ({
            ...look,
            values: points.map(({ perSecond }) => perSecond[member] ?? 0),
          }))}
        />
      </section>
      <section class="card body">
        <LineChart
          title="Latency"
          unit=" ms"
          times={times}
          timeOf={timeOf}
          end={
            <select
              aria-label="Latency of"
              value={latency}
              onChange={({ currentTarget }) => setLatency(currentTarget.value as Latency)}
            >
              {Object.entries(latencies).map(([value, text]) => (
                <option key={value} value={value}>
                  {text}
                </option>
              ))}
            </select>
          }
          series={percentiles.map(({ member, ...look }) => ({
            ...look,
            values: points.map(({ latencyMs }) => latencyMs[latency]?.[member] ?? null),
          }))}
        />
      </section>
      <section class="card body">
        <LineChart
          title="Waiting"
          times={times}
          timeOf={timeOf}
          series={backlogs.map(({ member, ...look }) => ({
            ...look,
            values: points.map(({ gauges }) => gauges[member] ?? 0),
          }))}
        />
      </section>
    </div>
  )
}
