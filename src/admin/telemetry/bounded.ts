/**
 * Names of operations may come from outside (a path, a topic), and a label must not: after so many distinct ones, a new
 * one is counted as `other`.
 */
export function createNames(most: number): (name: string) => string {
  const known = new Set<string>()
  return (name) => {
    if (known.has(name)) return name
    if (known.size >= most) return OTHER
    known.add(name)
    return name
  }
}

const OTHER = 'other'

/**
 * How often the busiest one of many did something within a window: distinguishes "one caller, very often" from "many, now and
 * then" without a label for each of them.
 */
export interface Busiest {
  count(name: string): void
  /** The largest count of the running window or of the one before it. */
  most(): number
}

export function createBusiest(windowMs: number, names: number, now: () => number): Busiest {
  let counts = new Map<string, number>()
  let mostBefore = 0
  let mostNow = 0
  let window = 0
  function turn(): void {
    const current = Math.floor(now() / windowMs)
    if (current === window) return
    mostBefore = current === window + 1 ? mostNow : 0
    mostNow = 0
    counts = new Map()
    window = current
  }
  return {
    count(name) {
      turn()
      // Full: who comes now for the first time is not counted, so that memory is bounded. The flood itself is in there.
      if (!counts.has(name) && counts.size >= names) return
      const count = (counts.get(name) ?? 0) + 1
      counts.set(name, count)
      if (count > mostNow) mostNow = count
    },
    most() {
      turn()
      return Math.max(mostBefore, mostNow)
    },
  }
}
