import { inspect } from 'node:util'

/** Long enough for a busy machine: a slow test passes, and a stuck one fails with a message. */
const PATIENCE_MS = 120_000
const LOOK_EVERY_MS = 5

type Seen<T> = Exclude<T, undefined | null | false | 0 | ''>

/**
 * Looks until what it sees is enough (without `enough`: until it is truthy), and returns it; the error says what it saw
 * last.
 */
export async function until<T>(what: string, look: () => T | Promise<T>): Promise<Seen<T>>
export async function until<T>(what: string, look: () => T | Promise<T>, enough: (seen: T) => boolean): Promise<T>
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  enough: (seen: T) => boolean = Boolean,
): Promise<T> {
  const giveUpMs = performance.now() + PATIENCE_MS
  for (;;) {
    const seen = await look()
    if (enough(seen)) return seen
    if (performance.now() > giveUpMs) {
      throw new Error(
        `Waited ${PATIENCE_MS / 1_000} s without success until ${what}. Last seen: ${inspect(seen, { depth: 4 })}`,
      )
    }
    await new Promise((resolve) => void setTimeout(resolve, LOOK_EVERY_MS))
  }
}
