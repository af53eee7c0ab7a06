import type { Decided, Description } from 'onceonly/saga'
import { useState } from 'preact/hooks'
import { type DiagramEdge, layered } from './layered.ts'

/** Every state with every event: a table without holes. */
export function SagaMatrix({ described: { matrix, events } }: { readonly described: Description }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="States and events">
      <table class="plain matrix">
        <thead>
          <tr>
            <th>State</th>
            {events.map((event) => (
              <th key={event}>{event}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {Object.entries(matrix).map(([state, row]) => (
            <tr key={state}>
              <th scope="row">{state}</th>
              {events.map((event) => (
                <Cell key={event} decided={row[event]} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Cell({ decided }: { readonly decided: Decided | undefined }) {
  if (decided === undefined) return <td />
  if (decided.kind === 'handled') {
    return <td class="handled">{decided.to.length === 0 ? 'handled' : `→ ${decided.to.join(', ')}`}</td>
  }
  return (
    <td class={decided.kind} title={decided.because ?? ''}>
      {decided.kind}
    </td>
  )
}

const boxWidth = 150
const boxHeight = 30
const columnPx = 240
const rowPx = 96
/** With more edges than these their names would cover each other: then those of the chosen state are shown. */
const namedEdgesMost = 6

/** States from top to bottom, in the order in which an instance can come to them; pointing at one shows its ways out. */
export function SagaDiagram({ described }: { readonly described: Description }) {
  const [chosen, setChosen] = useState<string | null>(null)
  const edges = edgesOf(described)
  const shown = edges.filter(({ from }) => (chosen === null ? edges.length <= namedEdgesMost : from === chosen))
  const { places, columns, rows } = layered(Object.keys(described.matrix), edges)
  const width = columns * columnPx
  const height = rows * rowPx
  const x = (state: string) => (places.get(state)?.column ?? 0) * columnPx + columnPx / 2
  const y = (state: string) => (places.get(state)?.row ?? 0) * rowPx + rowPx / 2
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Diagram of states">
      <svg
        class={chosen === null ? 'saga' : 'saga choosing'}
        width={width}
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={`States of ${described.name}: ${edges.map(({ from, to }) => `${from} to ${to}`).join(', ')}`}
      >
        <defs>
          <marker
            id="tip"
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="7"
            markerHeight="7"
            orient="auto-start-reverse"
          >
            <path d="M0 0L8 4L0 8Z" />
          </marker>
        </defs>
        {edges.map(({ from, to }) => (
          <Edge key={`${from} ${to}`} x1={x(from)} y1={y(from)} x2={x(to)} y2={y(to)} isChosen={from === chosen} />
        ))}
        {[...places.keys()].map((state) => (
          <g
            key={state}
            class={described.terminal.includes(state) ? 'state-box terminal' : 'state-box'}
            tabIndex={0}
            onMouseEnter={() => setChosen(state)}
            onMouseLeave={() => setChosen(null)}
            onFocus={() => setChosen(state)}
            onBlur={() => setChosen(null)}
          >
            <rect
              x={x(state) - boxWidth / 2}
              y={y(state) - boxHeight / 2}
              width={boxWidth}
              height={boxHeight}
              rx="15"
            />
            <text x={x(state)} y={y(state) + 4} text-anchor="middle">
              {state}
            </text>
          </g>
        ))}
        {shown.map(({ from, to, names }, at) => {
          // Beside the tip of its arrow; what leads to the same state stands above.
          const above = shown.slice(0, at).filter((edge) => edge.to === to).length
          return (
            <text key={`${from} ${to}`} class="name" x={x(to) + 9} y={y(to) - boxHeight / 2 - 8 - above * 14}>
              {names.join(', ')}
            </text>
          )
        })}
      </svg>
    </div>
  )
}

function edgesOf({ matrix, events }: Description): readonly DiagramEdge[] {
  const edges = new Map<string, DiagramEdge>()
  for (const [from, row] of Object.entries(matrix)) {
    for (const event of events) {
      const decided = row[event]
      if (decided?.kind !== 'handled') continue
      for (const to of decided.to) {
        if (to === from) continue
        const known = edges.get(`${from}→${to}`)
        edges.set(`${from}→${to}`, { from, to, names: [...(known?.names ?? []), event] })
      }
    }
  }
  return [...edges.values()]
}

interface EdgeProps {
  readonly x1: number
  readonly y1: number
  readonly x2: number
  readonly y2: number
  readonly isChosen: boolean
}

/** Down from end to end; back up, or past a row, in a bow to the side, so that it crosses no box. */
function Edge({ x1, y1, x2, y2, isChosen }: EdgeProps) {
  const isStep = y2 - y1 === rowPx
  const [startY, endY] = y2 > y1 ? [y1 + boxHeight / 2, y2 - boxHeight / 2] : [y1 - boxHeight / 2, y2 + boxHeight / 2]
  const bow = isStep ? 0 : (x1 === x2 ? 1 : Math.sign(x2 - x1)) * boxWidth
  const reach = (endY - startY) * (isStep ? 0.5 : 0.25)
  const path = `M${x1} ${startY}C${x1 + bow} ${startY + reach} ${x2 + bow} ${endY - reach} ${x2} ${endY}`
  return <path class={isChosen ? 'edge chosen' : 'edge'} d={path} marker-end="url(#tip)" />
}
