import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { shortCountText } from './format.ts'
import type { Series } from './series.ts'

/** What a chart hands to its plot. */
export interface PlotData {
  readonly times: readonly number[]
  readonly series: readonly Series[]
  readonly unit: string
}

export interface Plot {
  draw(data: PlotData): void
  remove(): void
}

const heightPx = 150
/** Wide enough for `250 ms`. */
const axisPx = 50

/** Loaded only where a chart is shown, because it is larger than all other parts of a page. */
export function createPlot(place: HTMLElement, pointAt: (index: number | null) => void): Plot {
  let plot: uPlot | null = null
  let drawn: PlotData | null = null

  function build(data: PlotData): void {
    plot?.destroy()
    plot = new uPlot(optionsOf(place.clientWidth, data, pointAt), valuesOf(data), place)
  }
  const sizes = new ResizeObserver(() => {
    if (place.clientWidth > 0) plot?.setSize({ width: place.clientWidth, height: heightPx })
  })
  sizes.observe(place)
  // The colours are read when it is built: another theme needs another plot.
  const themes = new MutationObserver(() => {
    if (drawn !== null) build(drawn)
  })
  themes.observe(document.documentElement, { attributeFilter: ['data-theme'] })

  return {
    draw(data) {
      const isSame = drawn !== null && shapeOf(drawn) === shapeOf(data)
      drawn = data
      if (plot === null || !isSame) build(data)
      else plot.setData(valuesOf(data))
    },
    remove() {
      sizes.disconnect()
      themes.disconnect()
      plot?.destroy()
    },
  }
}

function shapeOf({ series, unit }: PlotData): string {
  return [unit, ...series.map(({ name, colour }) => `${name} ${colour}`)].join('\n')
}

function valuesOf({ times, series }: PlotData): uPlot.AlignedData {
  return [times.map((ms) => ms / 1_000), ...series.map(({ values }) => [...values])]
}

function optionsOf(width: number, { series, unit }: PlotData, pointAt: (index: number | null) => void): uPlot.Options {
  const style = getComputedStyle(document.documentElement)
  const colour = (name: string) => style.getPropertyValue(name).trim()
  const axis = {
    stroke: colour('--faint'),
    font: `11px ${colour('--sans')}`,
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
  }
  return {
    width,
    height: heightPx,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.08 : 1] } },
    axes: [
      { ...axis, size: 22, values: (_plot, times) => times.map(clockText), space: 60 },
      { ...axis, size: axisPx, values: (_plot, values) => values.map((value) => shortCountText(value) + unit) },
    ],
    series: [
      {},
      ...series.map(({ name, colour: number }) => ({
        label: name,
        stroke: colour(`--series-${number}`),
        width: 1.6,
        // A line needs two points: one that stands alone is drawn as a dot.
        points: { show: true, size: 4, filter: lonely },
        spanGaps: false,
      })),
    ],
    hooks: { setCursor: [({ cursor }) => pointAt(cursor.idx ?? null)] },
  }
}

/** The values that have no neighbour. */
function lonely(plot: uPlot, seriesIdx: number): number[] {
  const values = plot.data[seriesIdx] ?? []
  const isThere = (at: number) => typeof values[at] === 'number'
  return Array.from(values, (_value, at) => at).filter((at) => isThere(at) && !isThere(at - 1) && !isThere(at + 1))
}

/** As the clock of the reader shows it. */
function clockText(seconds: number): string {
  return new Date(seconds * 1_000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', hour12: false })
}
