import type { Pointer } from '../core/record.ts'

/** What the first send of a content found, for identical sends that wait in this process. */
interface Found {
  readonly original: Pointer
  /** Of the original, when it was found. */
  readonly ageMs: number
  readonly atMs: number
}

export type Content = NonNullable<ReturnType<ReturnType<typeof createContents>['begin']>>

/** Contents that are being sent in this process: a storm of identical sends is one call of the store. */
export function createContents() {
  const running = new Map<string, { readonly over: Promise<Found | null>; found: Found | null }>()
  return {
    /** Null when the content is being sent already. */
    begin(key: string) {
      if (running.has(key)) return null
      const { promise: over, resolve } = Promise.withResolvers<Found | null>()
      const entry = { over, found: null as Found | null }
      running.set(key, entry)
      return {
        /** The original exists: identical sends that wait are duplicates of it. Only the first call counts. */
        found(original: Pointer, ageMs: number): void {
          entry.found ??= { original, ageMs, atMs: performance.now() }
          resolve(entry.found)
        },
        /** The send is over; without an original one of those that wait is first now. */
        end(): void {
          running.delete(key)
          resolve(null)
        },
      }
    },
    /** What its first send finds until then; null when that ends without an original, or not in time. */
    async wait(key: string, untilMs: number): Promise<Found | null> {
      const entry = running.get(key)
      if (entry === undefined) return null
      if (entry.found !== null) return entry.found
      const late = Promise.withResolvers<null>()
      const timer = setTimeout(() => late.resolve(null), Math.max(0, untilMs - performance.now()))
      try {
        return await Promise.race([entry.over, late.promise])
      } finally {
        clearTimeout(timer)
      }
    },
  }
}
