/** What happened in a run, in order: enough to compare two runs, and to show the end of one that failed. */
export interface Trace {
  note(what: string): void
  /** The first broken rule ends the run; consequences of it are not reported. */
  fail(rule: string, text: string): void
  readonly failure: BrokenRule | null
  /** Equal for two runs only if every event of them was equal. */
  hash(): string
  readonly events: number
  tail(lines: number): readonly string[]
}

export interface BrokenRule {
  readonly rule: string
  readonly text: string
  readonly atMs: number
}

/** The last events of a run are kept as text, the others only in the hash. */
const KEPT_LINES = 600

export function createTrace(now: () => number): Trace {
  const kept: string[] = []
  let events = 0
  let failure: BrokenRule | null = null
  // FNV-1a, twice with other primes: no secret to keep, only two runs to distinguish.
  let high = 0x811c9dc5
  let low = 0x01000193

  function note(what: string): void {
    const line = `${now().toFixed(0).padStart(7)} ${what}`
    for (let at = 0; at < line.length; at++) {
      const code = line.charCodeAt(at)
      high = Math.imul(high ^ code, 0x01000193)
      low = Math.imul(low ^ code, 0x85ebca6b)
    }
    kept[events % KEPT_LINES] = line
    events += 1
  }

  return {
    note,
    fail(rule, text) {
      if (failure !== null) return
      failure = { rule, text, atMs: now() }
      note(`BROKEN ${rule}: ${text}`)
    },
    get failure() {
      return failure
    },
    get events() {
      return events
    },
    hash: () => [high, low].map((word) => (word >>> 0).toString(16).padStart(8, '0')).join(''),
    tail(lines) {
      const count = Math.min(lines, events, KEPT_LINES)
      return Array.from({ length: count }, (_, index) => kept[(events - count + index) % KEPT_LINES] ?? '')
    },
  }
}
