import { type Counts, type Entry, furthest, type HistoryEvent, identityText } from 'onceonly/stream'
import { saidOf } from './said.ts'

export interface History {
  /** Told in an order in which causes come first; what was told before is not told again. */
  add(entry: Entry): boolean
  /** One event for each message, on the line of whoever wrote it. */
  readonly events: readonly HistoryEvent[]
}

/**
 * The messages of a room as a history of its people: an event is what somebody said, and its clock counts what they had
 * seen of everybody when they said it. So an arrow from one message to another means that the second may answer the first.
 */
export function createHistory(): History {
  const events: HistoryEvent[] = []
  const known = new Set<string>()
  const hosts = new Map<string, string>()
  // For each log: what everybody knows who has seen its first n entries.
  const seenAfter = new Map<string, Map<number, Counts>>()
  const last = new Map<string, Counts>()
  return {
    events,
    add(entry) {
      if (known.has(identityText(entry))) return false
      known.add(identityText(entry))
      const { name, text } = saidOf(entry.body)
      const host = hostOf(entry, name)
      const before = last.get(host) ?? {}
      const seen = Object.entries(entry.seen).map(([log, n]) => latest(log, n))
      const causes = [before, ...seen].reduce(furthest)
      const clock = { ...causes, [host]: (before[host] ?? 0) + 1 }
      last.set(host, clock)
      remember(entry, clock)
      events.push({ host, clock, text })
      return true
    },
  }

  /** A log may have begun before us, and hold copies that we were not told of: what is nearest below counts. */
  function latest(log: string, n: number): Counts {
    const counts = seenAfter.get(log)
    for (let at = n; counts !== undefined && at > 0; at -= 1) {
      const found = counts.get(at)
      if (found !== undefined) return found
    }
    return {}
  }

  function remember({ log, n }: Entry, clock: Counts): void {
    const counts = seenAfter.get(log) ?? new Map<number, Counts>()
    seenAfter.set(log, counts)
    counts.set(n, furthest(latest(log, n - 1), clock))
  }

  /** ShiViz wants a word, and two people may have one name. */
  function hostOf({ client, epoch }: Entry, name: string): string {
    const author = `${client}/${epoch}`
    const found = hosts.get(author)
    if (found !== undefined) return found
    const word = name.trim().replaceAll(/\s+/g, '-')
    const taken = new Set(hosts.values())
    let host = word
    for (let number = 2; taken.has(host); number += 1) host = `${word}-${number}`
    hosts.set(author, host)
    return host
  }
}
