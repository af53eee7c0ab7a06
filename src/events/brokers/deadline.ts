/** A promise that settles after a time, and a way to clear its timer. */
export interface Deadline {
  readonly late: Promise<void>
  /** What is left, at least one millisecond: drivers take zero for "no bound". */
  leftMs(): number
  cancel(): void
}

export function startDeadline(ms: number): Deadline {
  const endsAtMs = performance.now() + ms
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  return {
    late,
    leftMs: () => Math.max(1, Math.ceil(endsAtMs - performance.now())),
    cancel: () => clearTimeout(timer),
  }
}
