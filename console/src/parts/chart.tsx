import { useRef, useState } from 'preact/hooks'
import { shortCountText } from './format.ts'

export interface Series {
  readonly name: string
  /** One for each time, oldest first. */
  readonly values: readonly number[]
  /** Which of the colours of the series. */
  readonly colour: 1 | 2 | 3 | 4 | 5
}

interface LineChartProps {
  readonly title: string
  readonly series: readonly Series[]
  /** What stands under the cursor: the time of a value. */
  readonly timeOf: (at: number) => string
  readonly unit?: string
}

/** The lines are drawn on this grid and stretched to whatever width there is; texts stand beside, unstretched. */
const width = 600
const height = 120

/** Values over time, as lines. The values under the cursor are shown above; without a cursor, the newest ones. */
export function LineChart({ title, series, timeOf, unit = '' }: LineChartProps) {
  const [at, setAt] = useState<number | null>(null)
  const plot = useRef<SVGSVGElement>(null)
  const count = Math.max(0, ...series.map(({ values }) => values.length))
  const top = niceTop(Math.max(0, ...series.flatMap(({ values }) => values)))
  const x = (index: number) => (count < 2 ? width : (index / (count - 1)) * width)
  const y = (value: number) => height - (value / top) * (height - 4) - 1
  const shown = Math.min(at ?? count - 1, count - 1)
  const follow = (event: MouseEvent) => {
    const box = plot.current?.getBoundingClientRect()
    if (box === undefined || count === 0) return
    setAt(Math.max(0, Math.min(count - 1, Math.round(((event.clientX - box.left) / box.width) * (count - 1)))))
  }
  return (
    <figure class="chart" aria-label={title}>
      <figcaption>
        <h2>{title}</h2>
        <span class="faint">{shown < 0 ? '' : timeOf(shown)}</span>
      </figcaption>
      <ul class="legend">
        {series.map(({ name, values, colour }) => (
          <li key={name} data-series={colour}>
            {name} <b>{shortCountText(values[shown] ?? 0) + unit}</b>
          </li>
        ))}
      </ul>
      <div class="plot">
        <span class="top">{shortCountText(top) + unit}</span>
        <svg
          ref={plot}
          viewBox={`0 0 ${width} ${height}`}
          preserveAspectRatio="none"
          aria-hidden="true"
          onMouseMove={follow}
          onMouseLeave={() => setAt(null)}
        >
          <path class="grid" d={`M0 1H${width}M0 ${height / 2}H${width}M0 ${height - 1}H${width}`} />
          {series.map(({ name, values, colour }) => (
            <g key={name} data-series={colour}>
              {series.length === 1 && values.length > 1 ? (
                <path class="area" d={`${lineOf(values, x, y)}L${x(values.length - 1)} ${height}L0 ${height}Z`} />
              ) : null}
              <path class="line" d={lineOf(values, x, y)} />
            </g>
          ))}
          {at === null ? null : <path class="cursor" d={`M${x(at)} 0V${height}`} />}
        </svg>
      </div>
    </figure>
  )
}

function lineOf(values: readonly number[], x: (at: number) => number, y: (value: number) => number): string {
  return values.map((value, at) => `${at === 0 ? 'M' : 'L'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join('')
}

/** The next of 1, 2, 5, 10, …: an axis that jumps with every value cannot be read. */
function niceTop(most: number): number {
  if (most <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(most))
  return ([1, 2, 5, 10].find((step) => step * power >= most) ?? 10) * power
}

interface Part {
  readonly name: string
  readonly count: number
  readonly colour: 1 | 2 | 3 | 4 | 5
}

/** How a whole divides. */
export function ShareBar({ parts }: { readonly parts: readonly Part[] }) {
  const whole = parts.reduce((sum, { count }) => sum + count, 0)
  return (
    <div class="share">
      <div class="bar" aria-hidden="true">
        {parts.map(({ name, count, colour }) => (
          <span key={name} data-series={colour} style={{ flexGrow: whole === 0 ? 0 : count / whole }} />
        ))}
      </div>
      <ul class="legend">
        {parts.map(({ name, count, colour }) => (
          <li key={name} data-series={colour}>
            {name} <b>{shortCountText(count)}</b>
          </li>
        ))}
      </ul>
    </div>
  )
}
