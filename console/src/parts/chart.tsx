import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { shortCountText } from './format.ts'
import type { Plot } from './plot.ts'
import type { Colour, Series } from './series.ts'

interface LineChartProps {
  readonly title: string
  readonly series: readonly Series[]
  /** In milliseconds, oldest first. */
  readonly times: readonly number[]
  /** The time of a value, in words. */
  readonly timeOf: (at: number) => string
  readonly unit?: string
  readonly end?: ComponentChildren
}

/** Values over time, as lines. The values under the cursor are shown above; without a cursor, the newest ones. */
export function LineChart({ title, series, times, timeOf, unit = '', end }: LineChartProps) {
  const [at, setAt] = useState<number | null>(null)
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<Plot | null>(null)
  const data = { times, series, unit }
  const newest = useRef(data)
  newest.current = data
  useEffect(() => {
    let isGone = false
    void import('./plot.ts').then(({ createPlot }) => {
      if (isGone || place.current === null) return
      plot.current = createPlot(place.current, setAt)
      plot.current.draw(newest.current)
    })
    return () => {
      isGone = true
      plot.current?.remove()
    }
  }, [])
  useEffect(() => plot.current?.draw(data), [times, series, unit])
  const shown = Math.min(at ?? times.length - 1, times.length - 1)
  return (
    <figure class="chart" aria-label={title}>
      <figcaption>
        <h2>{title}</h2>
        {end}
        <span class="faint">{shown < 0 ? '' : timeOf(shown)}</span>
      </figcaption>
      <ul class="legend">
        {series.map(({ name, values, colour }) => (
          <li key={name} data-series={colour}>
            {name} <b>{valueText(values[shown] ?? null, unit)}</b>
          </li>
        ))}
      </ul>
      <div class="plot" ref={place} aria-hidden="true" />
    </figure>
  )
}

function valueText(value: number | null, unit: string): string {
  return value === null ? '–' : shortCountText(value) + unit
}

interface Part {
  readonly name: string
  readonly count: number
  readonly colour: Colour
}

/** How a whole divides. */
export function ShareBar({ parts }: { readonly parts: readonly Part[] }) {
  const whole = parts.reduce((sum, { count }) => sum + count, 0)
  return (
    <div class="share">
      <div class="bar" aria-hidden="true">
        {parts
          .filter(({ count }) => count > 0)
          .map(({ name, count, colour }) => (
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
