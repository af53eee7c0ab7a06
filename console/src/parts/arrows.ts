import type { ShivizEvent } from 'onceonly/stream/parts'

/** From a cause to its effect, as places in the history. */
export interface Arrow {
  readonly from: number
  readonly to: number
}

export interface Drawn {
  /** Between hosts; along a host its line says the same. */
  readonly arrows: readonly Arrow[]
  /** How far down each event stands: below everything that caused it. */
  readonly rows: readonly number[]
  readonly hosts: readonly string[]
}

/**
 * What caused what, as ShiViz draws it: an event has an arrow from whatever its clock has newly seen, unless another of
 * its causes had seen that before. The history is in an order in which causes come first, as `toShiViz` writes it.
 */
export function drawn(history: readonly ShivizEvent[]): Drawn {
  const hosts = [...new Set(history.map(({ host }) => host))]
  // Where the event stands that its host counts as the n-th.
  const places = new Map<string, Map<number, number>>(hosts.map((host) => [host, new Map()]))
  const arrows: Arrow[] = []
  const rows: number[] = []
  for (const [at, event] of history.entries()) {
    const own = countOf(event.clock, event.host)
    const causes = causesOf(event, history, places)
    for (const cause of causes) if (history[cause]?.host !== event.host) arrows.push({ from: cause, to: at })
    rows.push(Math.max(-1, ...causes.map((cause) => rows[cause] ?? -1)) + 1)
    places.get(event.host)?.set(own, at)
  }
  return { arrows, rows, hosts }
}

/** People may be called like something that every object has. */
export function countOf(clock: ShivizEvent['clock'], host: string): number {
  return Object.hasOwn(clock, host) ? (clock[host] ?? 0) : 0
}

function causesOf(
  { host, clock }: ShivizEvent,
  history: readonly ShivizEvent[],
  places: ReadonlyMap<string, ReadonlyMap<number, number>>,
): readonly number[] {
  const before = places.get(host)?.get(countOf(clock, host) - 1)
  const known = before === undefined ? {} : (history[before]?.clock ?? {})
  const candidates = Object.entries(clock).flatMap(([node, count]) => {
    const place = node === host ? before : count > countOf(known, node) ? places.get(node)?.get(count) : undefined
    return place === undefined ? [] : [place]
  })
  // The latest first: an event that saw another comes after it, so only the remaining ones need to be compared.
  const last: number[] = []
  for (const cause of candidates.sort((a, b) => b - a)) {
    if (!last.some((other) => saw(history[other], history[cause]))) last.push(cause)
  }
  return last
}

function saw(later: ShivizEvent | undefined, earlier: ShivizEvent | undefined): boolean {
  if (later === undefined || earlier === undefined) return false
  return countOf(later.clock, earlier.host) >= countOf(earlier.clock, earlier.host)
}
