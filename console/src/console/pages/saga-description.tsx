import type { Decided, Description } from 'onceonly/saga'
import { useEffect, useState } from 'preact/hooks'
import { Loading } from '../../parts/states.tsx'
import type { GraphEdge, SagaGraph } from './saga-graph.ts'

/** Every state with every event: a table without holes. */
export function SagaMatrix({ described: { matrix, events, failed } }: { readonly described: Description }) {
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
                <Cell key={event} decided={row[event]} failed={failed} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

interface CellProps {
  readonly decided: Decided | undefined
  readonly failed: readonly string[]
}

function Cell({ decided, failed }: CellProps) {
  if (decided === undefined) return <td />
  if (decided.kind === 'handled') {
    const isFailure = decided.to.length > 0 && decided.to.every((state) => failed.includes(state))
    return (
      <td class={isFailure ? 'fault' : 'handled'}>
        {decided.to.length === 0 ? 'handled' : `→ ${decided.to.join(', ')}`}
      </td>
    )
  }
  return (
    <td class={decided.kind} title={decided.because ?? ''}>
      {decided.kind}
    </td>
  )
}

/** The states from top to bottom, and which event leads from where to where. Pointing at a state shows its own. */
export function SagaDiagram({ described }: { readonly described: Description }) {
  const [drawn, setDrawn] = useState<Drawn | null>(null)
  const [chosen, setChosen] = useState<string | null>(null)
  useEffect(() => {
    // The layout is loaded only where a diagram is shown.
    void import('./saga-graph.ts').then(({ sagaGraph, curveOf, boxWidth, boxHeight, linePx }) =>
      setDrawn({ graph: sagaGraph(described), curveOf, boxWidth, boxHeight, linePx }),
    )
  }, [described])
  if (drawn === null) return <Loading />
  const { graph, curveOf, boxWidth, boxHeight, linePx } = drawn
  const { width, height, states, edges } = graph
  const isShown = ({ from, to }: GraphEdge) => chosen === null || from === chosen || to === chosen
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Diagram of states">
      <svg
        class="saga"
        width={width}
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={`States of ${described.name}: ${edges.map(({ from, to, events }) => `${from} to ${to} by ${events.join(' or ')}`).join(', ')}`}
      >
        <defs>
          <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 0L8 4L0 8Z" fill="context-stroke" />
          </marker>
        </defs>
        {edges.map((edge) => (
          <path
            key={`${edge.from} ${edge.to}`}
            class={`edge${described.failed.includes(edge.to) ? ' failing' : ''}${isShown(edge) ? '' : ' away'}`}
            d={curveOf(edge.path)}
            marker-end="url(#tip)"
          />
        ))}
        {edges.map((edge) => (
          <g key={`${edge.from} ${edge.to}`} class={isShown(edge) ? '' : 'away'}>
            {edge.events.map((event, at) => (
              <text
                key={event}
                class="name"
                text-anchor="middle"
                x={edge.label.x}
                y={edge.label.y + (at - (edge.events.length - 1) / 2) * linePx + 4}
              >
                {event}
              </text>
            ))}
          </g>
        ))}
        {states.map(({ name, x, y }) => (
          <g
            key={name}
            class={`state-box ${kindOf(described, name)}`}
            onMouseEnter={() => setChosen(name)}
            onMouseLeave={() => setChosen(null)}
          >
            <rect x={x - boxWidth / 2} y={y - boxHeight / 2} width={boxWidth} height={boxHeight} rx="15" />
            <text x={x} y={y + 4} text-anchor="middle">
              {name}
            </text>
          </g>
        ))}
      </svg>
    </div>
  )
}

interface Drawn {
  readonly graph: SagaGraph
  readonly curveOf: (path: GraphEdge['path']) => string
  readonly boxWidth: number
  readonly boxHeight: number
  readonly linePx: number
}

function kindOf({ terminal, failed }: Description, state: string): 'failing' | 'terminal' | '' {
  if (failed.includes(state)) return 'failing'
  return terminal.includes(state) ? 'terminal' : ''
}
