import { setTimeout as sleep } from 'node:timers/promises'

const LOOK_EVERY_MS = 50
const LONGEST_MS = 20_000

/** Looks until it has seen enough, and answers what it saw; what it saw last is in the error. */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  enough: (seen: T) => boolean,
  longestMs = LONGEST_MS,
): Promise<T> {
  const deadline = performance.now() + longestMs
  for (;;) {
    const seen = await look()
    if (enough(seen)) return seen
    if (performance.now() > deadline) throw new Error(`${what}: ${JSON.stringify(seen)}`)
    await sleep(LOOK_EVERY_MS)
  }
}
