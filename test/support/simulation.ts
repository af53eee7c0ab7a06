import type { Runtime } from '../../src/runtime/runtime.ts'
import type { Random } from '../../src/testing/random.ts'
import { createRandom } from '../../src/testing/random.ts'

/** Virtual time: everything that waits, waits here, and a whole day takes a few milliseconds. */
export interface Simulation {
  readonly random: Random
  now(): number
  /**
   * One process's view. After `crash` none of its timers fires any more; `pause` holds them back for a while. Its clock
   * starts at `skewMs` and passes `rate` milliseconds in one of the world's.
   */
  process(options?: { readonly skewMs?: number; readonly rate?: number }): SimulatedProcess
  /** A timer of the world itself, which fires whatever happens to processes. */
  timer(ms: number, fire: () => void): { cancel(): void }
  /** Resolves after that much virtual time: the same for who waits. */
  after(ms: number): Promise<void>
  /** Runs events in order of time until nothing is left, until the bound, or until `enough` says so. */
  run(bound: SimulationBound): Promise<SimulationEnd>
}

export interface SimulationBound {
  readonly untilMs: number
  readonly events: number
  /** Asked before every event: a failed run need not continue. */
  enough?(): boolean
}

export type SimulationEnd = 'idle' | 'enough' | 'out_of_time' | 'too_many_events'

export interface SimulatedProcess {
  readonly runtime: Runtime
  crash(): void
  /** As by SIGSTOP: its timers fire only after the pause, its clock continues. */
  pause(ms: number): void
  readonly crashed: boolean
  readonly paused: boolean
}

interface Event {
  at: number
  readonly order: number
  /** The process that owns it; null for the world. */
  readonly owner: Owner | null
  readonly background: boolean
  fire(): void
  cancelled: boolean
}

interface Owner {
  crashed: boolean
  pausedUntil: number
}

export function createSimulation({ seed }: { readonly seed: number }): Simulation {
  const random = createRandom(seed)
  const heap = createHeap()
  let now = 0
  let orders = 0
  /** Foreground events: when only background loops are left, the world is at rest. */
  let foreground = 0

  function schedule(ms: number, owner: Owner | null, background: boolean, fire: () => void): { cancel(): void } {
    const event: Event = { at: now + Math.max(0, ms), order: orders++, owner, background, fire, cancelled: false }
    heap.push(event)
    if (!background) foreground++
    return {
      cancel() {
        if (event.cancelled) return
        event.cancelled = true
        if (!background) foreground--
      },
    }
  }

  function process({ skewMs = 0, rate = 1 }: { skewMs?: number; rate?: number } = {}): SimulatedProcess {
    const owner: Owner = { crashed: false, pausedUntil: 0 }
    return {
      runtime: {
        monotonicMs: () => now * rate + skewMs,
        setTimer: (ms, fire, background) => schedule(ms / rate, owner, background, fire),
        soon: (fire) => void schedule(0, owner, false, fire),
        random: random.next,
        newId: random.id,
      },
      crash: () => void (owner.crashed = true),
      pause: (ms) => void (owner.pausedUntil = Math.max(owner.pausedUntil, now + ms)),
      get crashed() {
        return owner.crashed
      },
      get paused() {
        return owner.pausedUntil > now
      },
    }
  }

  function step(event: Event): void {
    now = Math.max(now, event.at)
    if (event.cancelled) return
    const { owner } = event
    if (owner !== null && !owner.crashed && owner.pausedUntil > now) {
      // A paused process finds its timers due when it wakes, in their old order.
      event.at = owner.pausedUntil
      heap.push(event)
      return
    }
    event.cancelled = true
    if (!event.background) foreground--
    if (owner?.crashed !== true) event.fire()
  }

  return {
    random,
    process,
    now: () => now,
    timer: (ms, fire) => schedule(ms, null, false, fire),
    after: (ms) => new Promise((resolve) => void schedule(ms, null, false, resolve)),
    async run({ untilMs, events, enough }) {
      let count = 0
      const next = (): SimulationEnd | null => {
        if (enough?.() === true) return 'enough'
        if (count++ >= events) return 'too_many_events'
        if (foreground === 0) return 'idle'
        const event = heap.pop()
        if (event === null) return 'idle'
        if (event.at > untilMs) return 'out_of_time'
        step(event)
        return null
      }
      for (;;) {
        const end = await turn(next)
        if (end !== null) return end
      }
    },
  }
}

/** A turn of the event loop costs as much as a small event: so it runs this many. */
const EVENTS_PER_TURN = 64

/**
 * Runs events until one says how it ended. Between two immediates of one turn all ready promises continue, so that everything
 * that is ready in a moment runs before time advances.
 */
function turn(next: () => SimulationEnd | null): Promise<SimulationEnd | null> {
  return new Promise((resolve, reject) => {
    let over = false
    for (let left = EVENTS_PER_TURN - 1; left >= 0; left--) {
      setImmediate(() => {
        if (over) return
        try {
          const end = next()
          over = end !== null
          if (over || left === 0) resolve(end)
        } catch (error) {
          over = true
          reject(error)
        }
      })
    }
  })
}

/** Earliest first, and among equals in order of their making, so that a run can be repeated. */
function createHeap() {
  const items: Event[] = []
  const before = (a: Event, b: Event) => a.at < b.at || (a.at === b.at && a.order < b.order)

  function sink(from: number): void {
    for (let at = from; ; ) {
      let least = at
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < items.length && before(items[child] as Event, items[least] as Event)) least = child
      }
      if (least === at) return
      swap(at, least)
      at = least
    }
  }

  function swap(a: number, b: number): void {
    const held = items[a] as Event
    items[a] = items[b] as Event
    items[b] = held
  }

  return {
    push(event: Event): void {
      let at = items.push(event) - 1
      while (at > 0) {
        const parent = (at - 1) >> 1
        if (!before(items[at] as Event, items[parent] as Event)) return
        swap(at, parent)
        at = parent
      }
    },
    pop(): Event | null {
      const top = items[0]
      if (top === undefined) return null
      const last = items.pop() as Event
      if (items.length > 0) {
        items[0] = last
        sink(0)
      }
      return top
    },
  }
}
