import type { Pointer } from '../core/record.ts'

/** What the first sender of a content found out, for those that came while it was under way. */
export interface Found {
  readonly original: Pointer
  /** Of the original, when it was found. */
  readonly ageMs: number
  readonly atMs: number
}

/** One content that is under way in this process. */
export interface Content {
  /** The original exists: those that wait are duplicates of it. The first word counts. */
  found(original: Pointer, ageMs: number): void
  /** It is over; without an original those that wait decide anew, and one of them leads. */
  end(): void
}

/**
 * Contents under way in this process. The first sender of a content asks the locks; identical ones wait for what it
 * finds, so that a storm of them is one question to the store.
 */
export interface Contents {
  /** Null when the content is under way already. */
  begin(key: string): Content | null
  /** What its first sender finds until then; null when it ends without an original, or not in time. */
  wait(key: string, untilMs: number): Promise<Found | null>
}

export function createContents(): Contents {
  const running = new Map<string, { readonly over: Promise<Found | null>; found: Found | null }>()
  return {
    begin(key) {
      if (running.has(key)) return null
      const { promise: over, resolve } = Promise.withResolvers<Found | null>()
      const entry = { over, found: null as Found | null }
      running.set(key, entry)
      return {
        found(original, ageMs) {
          entry.found ??= { original, ageMs, atMs: performance.now() }
          resolve(entry.found)
        },
        end() {
          running.delete(key)
          resolve(null)
        },
      }
    },
    async wait(key, untilMs) {
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
