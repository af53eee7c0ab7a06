import type { ShivizEvent } from 'onceonly/stream/parts'
import { useMemo, useState } from 'preact/hooks'
import { countOf, drawn } from './arrows.ts'

const columnPx = 78
const rowPx = 26
const headPx = 34
const dotPx = 5
/** Of which a curve comes half as near: past a dot, with room to spare. */
const bendPx = 26
/** As many letters as fit over a column. */
const headChars = 11

interface SpaceTimeProps {
  /** In an order in which causes come first. */
  readonly history: readonly ShivizEvent[]
  /** Which of the colours of the series an event has, from 1 on. */
  readonly colour: (event: ShivizEvent) => number
}

/** What caused what: a line for every host, downwards in time, and an arrow for every message. */
export function SpaceTime({ history, colour }: SpaceTimeProps) {
  const { arrows, rows, hosts } = useMemo(() => drawn(history), [history])
  const [chosen, setChosen] = useState<number | null>(null)
  const width = Math.max(1, hosts.length) * columnPx
  const height = headPx + (Math.max(0, ...rows) + 1) * rowPx + 12
  const x = (host: string) => hosts.indexOf(host) * columnPx + columnPx / 2
  const y = (at: number) => headPx + (rows[at] ?? 0) * rowPx + rowPx / 2
  const target = chosen === null ? undefined : history[chosen]
  return (
    <svg
      class={target === undefined ? 'space-time' : 'space-time focused'}
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={`Space-time diagram: ${history.length} events on ${hosts.length} hosts`}
      onMouseLeave={() => setChosen(null)}
    >
      {hosts.map((host) => (
        <g key={host}>
          <line class="host" x1={x(host)} x2={x(host)} y1={headPx - 4} y2={height} />
          <text class="head" x={x(host)} y={18} text-anchor="middle">
            <title>{host}</title>
            {host.length > headChars ? `${host.slice(0, headChars - 1)}…` : host}
          </text>
        </g>
      ))}
      {arrows.map(({ from, to }) => {
        const [cause, effect] = [history[from], history[to]]
        if (cause === undefined || effect === undefined) return null
        const isRelated = target !== undefined && isWithin(cause, target) && isWithin(effect, target)
        return (
          <Arrow
            key={`${from}-${to}`}
            id={`${cause.host}:${cause.clock[cause.host]}→${effect.host}:${effect.clock[effect.host]}`}
            x1={x(cause.host)}
            y1={y(from)}
            x2={x(effect.host)}
            y2={y(to)}
            isRelated={isRelated}
          />
        )
      })}
      {history.map((event, at) => (
        <circle
          key={`${event.host}:${event.clock[event.host]}`}
          class={target !== undefined && isWithin(event, target) ? 'event related' : 'event'}
          cx={x(event.host)}
          cy={y(at)}
          r={dotPx}
          data-series={colour(event)}
          onMouseEnter={() => setChosen(at)}
        >
          <title>{`${event.text}\n${event.host} ${JSON.stringify(event.clock)}`}</title>
        </circle>
      ))}
    </svg>
  )
}

interface ArrowProps {
  readonly id: string
  readonly x1: number
  readonly y1: number
  readonly x2: number
  readonly y2: number
  readonly isRelated: boolean
}

/**
 * A line and its head, drawn apart, because a marker cannot take the colour of its line in every browser. One that crosses
 * the line of another host is bent, so that it never runs through a dot that it has nothing to do with.
 */
function Arrow({ id, x1, y1, x2, y2, isRelated }: ArrowProps) {
  const straight = Math.atan2(y2 - y1, x2 - x1)
  const bend = Math.abs(x2 - x1) > columnPx ? bendPx : 0
  const [overX, overY] = [(x1 + x2) / 2 + Math.sin(straight) * bend, (y1 + y2) / 2 - Math.cos(straight) * bend]
  const angle = Math.atan2(y2 - overY, x2 - overX)
  // The head ends where the dot begins.
  const [tipX, tipY] = [x2 - Math.cos(angle) * (dotPx + 1), y2 - Math.sin(angle) * (dotPx + 1)]
  const wing = (turn: number) => `${tipX - 7 * Math.cos(angle + turn)} ${tipY - 7 * Math.sin(angle + turn)}`
  return (
    <g class={isRelated ? 'arrow related' : 'arrow'} data-arrow={id}>
      <path class="way" d={`M${x1} ${y1}Q${overX} ${overY} ${tipX} ${tipY}`} />
      <path class="tip" d={`M${tipX} ${tipY}L${wing(0.42)}L${wing(-0.42)}Z`} />
    </g>
  )
}

/** An event belongs to the past of another, or is that one. */
function isWithin(event: ShivizEvent, later: ShivizEvent): boolean {
  return countOf(later.clock, event.host) >= countOf(event.clock, event.host)
}
