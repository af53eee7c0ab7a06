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
  /** From the border of the one state to the border of the other, through the middle of its label. */
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
/** The corners of a state are round: lines end beside them. */
const cornerPx = 16

/** Where the states and the events between them stand, so that no line crosses a state and no label another one. */
export function sagaGraph({ matrix, events }: Pick<Description, 'matrix' | 'events'>): SagaGraph {
  const graph = new Graph()
  graph.setGraph({ rankdir: 'TB', nodesep: 24, ranksep: 52, edgesep: 12, marginx: marginPx, marginy: marginPx })
  for (const name of Object.keys(matrix)) graph.setNode(name, { width: boxWidth, height: boxHeight })
  const named = eventsBetween(matrix, events)
  for (const { from, to, events: along } of named) {
    const widest = Math.max(...along.map((event) => event.length))
    const label = { width: widest * charPx, height: along.length * linePx, labelpos: 'c' as const }
    graph.setEdge(from, to, label)
  }
  layout(graph)
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number }
  const labels = named.map(({ from, to }) => graph.edge(from, to) as Placed)
  const rowOf = rows([...Object.keys(matrix).map((name) => graph.node(name) as Placed), ...labels])
  return {
    width,
    height,
    states: Object.keys(matrix).map((name) => ({ name, ...pointOf(graph.node(name)) })),
    edges: named.map((edge) => {
      const placed = graph.edge(edge.from, edge.to) as Placed & { readonly points: readonly Point[] }
      const [from, to] = [pointOf(graph.node(edge.from)), pointOf(graph.node(edge.to))]
      const between = placed.points.slice(1, -1).flatMap((point) => through(point, rowOf(point), from.y < to.y))
      const path = [borderTowards(from, between[0] ?? to), ...between, borderTowards(to, between.at(-1) ?? from)]
      return { ...edge, path, label: pointOf(placed) }
    }),
  }
}

function pointOf(placed: unknown): Point {
  const { x, y } = placed as Point
  return { x, y }
}

interface Placed extends Point {
  readonly height: number
}

/** How high each row of states or labels is, by its middle. */
function rows(placed: readonly Placed[]): (point: Point) => number {
  const heights = new Map<number, number>()
  for (const { y, height } of placed) heights.set(y, Math.max(height, heights.get(y) ?? 0))
  return ({ y }) => heights.get(y) ?? 0
}

/** Straight through a row, so that lines bend only between two rows, where no label stands. */
function through({ x, y }: Point, height: number, isDown: boolean): readonly Point[] {
  const [above, below] = [
    { x, y: y - height / 2 },
    { x, y: y + height / 2 },
  ]
  return isDown ? [above, below] : [below, above]
}

/** Lines leave and reach a state from above or below, as near to where they lead as it is wide. */
function borderTowards({ x, y }: Point, next: Point): Point {
  const aside = boxWidth / 2 - cornerPx
  return {
    x: Math.min(Math.max(next.x, x - aside), x + aside),
    y: next.y < y ? y - boxHeight / 2 : y + boxHeight / 2,
  }
}

/** Through every point, upright at each: so that it bends only between two ranks, and meets its label. */
export function curveOf([first, ...rest]: GraphEdge['path']): string {
  if (first === undefined) return ''
  let last = first
  const bends = rest.map((point) => {
    const middle = (last.y + point.y) / 2
    const bend = `C${last.x} ${middle} ${point.x} ${middle} ${point.x} ${point.y}`
    last = point
    return bend
  })
  return `M${first.x} ${first.y}${bends.join('')}`
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
