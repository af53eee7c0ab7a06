export interface DiagramEdge {
  readonly from: string
  readonly to: string
  readonly names: readonly string[]
}

export interface Layers {
  readonly places: ReadonlyMap<string, { readonly column: number; readonly row: number }>
  readonly columns: number
  readonly rows: number
}

/** Every node below all that lead to it, as far as cycles allow; what nothing leads to stands at the top. */
export function layered(nodes: readonly string[], edges: readonly DiagramEdge[]): Layers {
  const order = causesFirst(nodes, edges)
  const rowOf = new Map(nodes.map((node) => [node, 0]))
  for (const [at, node] of order.entries()) {
    for (const { from, to } of edges) {
      // An edge that leads back in the order closes a cycle, and decides nothing.
      if (from !== node || order.indexOf(to) <= at) continue
      rowOf.set(to, Math.max(rowOf.get(to) ?? 0, (rowOf.get(node) ?? 0) + 1))
    }
  }

  const byRow = Map.groupBy(nodes, (node) => rowOf.get(node) ?? 0)
  const columns = Math.max(1, ...[...byRow.values()].map((row) => row.length))
  const places = new Map<string, { column: number; row: number }>()
  for (const [row, members] of byRow) {
    for (const [at, node] of members.entries()) places.set(node, { column: at + (columns - members.length) / 2, row })
  }
  return { places, columns, rows: Math.max(0, ...byRow.keys()) + 1 }
}

/** A walk in depth, read backwards: whatever is reached from a node comes after it, but for what closes a cycle. */
function causesFirst(nodes: readonly string[], edges: readonly DiagramEdge[]): readonly string[] {
  const seen = new Set<string>()
  const finished: string[] = []
  const visit = (node: string) => {
    if (seen.has(node)) return
    seen.add(node)
    for (const { from, to } of edges) if (from === node) visit(to)
    finished.push(node)
  }
  const reached = new Set(edges.map(({ to }) => to))
  for (const node of nodes) if (!reached.has(node)) visit(node)
  for (const node of nodes) visit(node)
  return finished.toReversed()
}
