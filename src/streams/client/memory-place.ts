import { createShelfPlace } from './place-on-shelf.ts'
import { applyChanges } from './place-shelf.ts'
import type { ClientPlace } from './ports.ts'

/**
 * A client's place in memory: survives reconnects, not restarts. Give the same one to the next client to simulate a restart.
 * It keeps no more than a place on a disk does: what is pending, a position, and the last number of each sender.
 *
 * @example
 * ```ts
 * import { createMemoryPlace } from 'onceonly/stream'
 *
 * export const place = createMemoryPlace()
 * ```
 */
export function createMemoryPlace(): ClientPlace {
  const kept = new Map<string, unknown>()
  return createShelfPlace({
    load: async () => new Map(kept),
    write: async (changes) => applyChanges(kept, changes),
    stop: async () => {},
  })
}
