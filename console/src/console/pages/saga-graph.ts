import { Graph, layout } from '@dagrejs/dagre'
import type { Description } from 'onceonly/saga'

interface Point {
  readonly x: number
  readonly y: number
}

export interface GraphState extends Point {
  readonly name: string
}

export interface GraphEdge {
  readonly from: string
  readonly to: string
  /** The events that lead along it. */
  readonly events: readonly string[]
  readonly path: readonly Point[]
  /** Where its events are written. */
  readonly label: Point
}

export interface SagaGraph {
  readonly width: number
  readonly height: number
  readonly states: readonly GraphState[]
  readonly edges: readonly GraphEdge[]
}

export const boxWidth = 132
export const boxHeight = 30
/** Of a line of a label, at its size; a little more than most letters need. */
const charPx = 6.6
export const linePx = 13
const marginPx = 12

/** Where the states and the events between them stand, so that no line crosses a state and no label another one. */
export function sagaGraph({ matrix, events }: Pick<Description, 'matrix' | 'events'>): SagaGraph {
  const graph = new Graph()
  graph.setGraph({ rankdir: 'TB', nodesep: 24, ranksep: 36, edgesep: 12, marginx: marginPx, marginy: marginPx })
  for (const name of Object.keys(matrix)) graph.setNode(name, { width: boxWidth, height: boxHeight })
  const named = eventsBetween(matrix, events)
  for (const { from, to, events: along } of named) {
    const widest = Math.max(...along.map((event) => event.length))
    const label = { width: widest * charPx, height: along.length * linePx, labelpos: 'c' as const }
    graph.setEdge(from, to, label)
  }
  layout(graph)
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number }
  return {
    width,
    height,
    states: Object.keys(matrix).map((name) => ({ name, ...pointOf(graph.node(name)) })),
    edges: named.map((edge) => {
      const placed = graph.edge(edge.from, edge.to) as Point & { readonly points: readonly Point[] }
      return { ...edge, path: placed.points, label: pointOf(placed) }
    }),
  }
}

function pointOf(placed: unknown): Point {
  const { x, y } = placed as Point
  return { x, y }
}

function eventsBetween(matrix: Description['matrix'], events: readonly string[]) {
  const edges = new Map<string, { from: string; to: string; events: string[] }>()
  for (const [from, row] of Object.entries(matrix)) {
    for (const event of events) {
      const decided = row[event]
      if (decided?.kind !== 'handled') continue
      for (const to of decided.to) {
        if (to === from) continue
        const known = edges.get(`${from}→${to}`)
        if (known === undefined) edges.set(`${from}→${to}`, { from, to, events: [event] })
        else known.events.push(event)
      }
    }
  }
  return [...edges.values()]
}
