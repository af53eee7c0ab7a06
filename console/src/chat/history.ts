import { type Entry, identityText } from 'onceonly/stream'
import { type Counts, type ShivizEvent } from 'onceonly/stream/parts'
import { saidOf } from './said.ts'

export interface History {
  /** Called in an order in which causes come first, once for each entry. */
  add(entry: Entry): boolean
  /** One event for each message, on the line of its author; the newest ones, where there are too many. */
  readonly events: readonly ShivizEvent[]
  /** Grows with each event, also when an older one is dropped for it. */
  readonly version: number
  subscribe(changed: () => void): () => void
}

/** As many as a window holds messages. */
const EVENTS_MOST = 10_000
/** Dropped at a time: moving a long list for each event would cost more than drawing it. */
const DROPPED_EVENTS = 500

/** Counts by the number of a host: with names instead, a room of a thousand people would take half a minute. */
type Clock = readonly number[]

/** Of one log: the numbers that are known, ascending, and what a reader that has seen it up to each knows. */
interface LogClocks {
  readonly numbers: number[]
  readonly clocks: Clock[]
}

/**
 * The messages of a room as a history of its people: an event is a message, and its clock counts what its author had
 * seen of all others when they said it. So an arrow from one message to another means that the second may answer the first.
 */
export function createHistory(): History {
  const events: ShivizEvent[] = []
  const known = new Set<string>()
  /** The number of each author, and the name of each number. */
  const hosts = new Map<string, number>()
  const names: string[] = []
  const taken = new Set<string>()
  const logs = new Map<string, LogClocks>()
  const last = new Map<number, Clock>()
  const listeners = new Set<() => void>()
  let version = 0
  return {
    events,
    get version() {
      return version
    },
    add(entry) {
      if (known.has(identityText(entry))) return false
      known.add(identityText(entry))
      const { name, text } = saidOf(entry.body)
      const host = hostOf(entry, name)
      const before = last.get(host) ?? []
      const clock = furthest([before, ...Object.entries(entry.seen).map(([log, n]) => latest(log, n))])
      while (clock.length < host) clock.push(0)
      clock[host] = (before[host] ?? 0) + 1
      last.set(host, clock)
      remember(entry, clock)
      events.push(eventOf(host, clock, text))
      version += 1
      if (events.length >= EVENTS_MOST + DROPPED_EVENTS) dropOldest()
      for (const listener of listeners) listener()
      return true
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }

  /** A log may have begun before this client, and hold copies that it did not get: the nearest entry below counts. */
  function latest(log: string, n: number): Clock {
    const { numbers = [], clocks = [] } = logs.get(log) ?? {}
    return clocks[countUpTo(numbers, n) - 1] ?? []
  }

  function remember({ log, n }: Entry, clock: Clock): void {
    const { numbers, clocks } = logs.get(log) ?? { numbers: [], clocks: [] }
    logs.set(log, { numbers, clocks })
    const at = countUpTo(numbers, n)
    const whole = furthest([clocks[at - 1] ?? [], clock])
    numbers.splice(at, 0, n)
    clocks.splice(at, 0, whole)
  }

  function dropOldest(): void {
    events.splice(0, DROPPED_EVENTS)
    for (const identity of [...known].slice(0, DROPPED_EVENTS)) known.delete(identity)
    for (const { numbers, clocks } of logs.values()) {
      const surplus = Math.max(0, numbers.length - EVENTS_MOST)
      numbers.splice(0, surplus)
      clocks.splice(0, surplus)
    }
  }

  /** ShiViz wants a word, and two people may have one name. */
  function hostOf({ client, epoch }: Entry, name: string): number {
    const author = `${client}/${epoch}`
    const found = hosts.get(author)
    if (found !== undefined) return found
    const word = name.trim().replaceAll(/\s+/g, '-')
    let host = word
    for (let number = 2; taken.has(host); number += 1) host = `${word}-${number}`
    taken.add(host)
    hosts.set(author, names.length)
    return names.push(host) - 1
  }

  /** Its clock by names is made when it is shown: most never are. */
  function eventOf(host: number, clock: Clock, text: string): ShivizEvent {
    let counts: Counts | undefined
    const spelled = () => Object.fromEntries(clock.flatMap((count, at) => (count > 0 ? [[names[at], count]] : [])))
    return {
      host: names[host] ?? '',
      text,
      get clock(): Counts {
        return (counts ??= spelled())
      },
    }
  }
}

function furthest(clocks: readonly Clock[]): number[] {
  const most: number[] = []
  for (const clock of clocks) {
    for (let at = 0; at < clock.length; at++) most[at] = Math.max(most[at] ?? 0, clock[at] ?? 0)
  }
  return most
}

/** How many of the numbers, which ascend, are at most `n`. */
function countUpTo(numbers: readonly number[], n: number): number {
  let [low, high] = [0, numbers.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((numbers[middle] ?? 0) <= n) low = middle + 1
    else high = middle
  }
  return low
}
