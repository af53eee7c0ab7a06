import { createClientStorage } from './client-storage.ts'
import { applyChanges } from './key-values.ts'
import type { ClientStorage } from './ports.ts'

/**
 * Storage of a client in memory: survives reconnects, not restarts. Give the same one to the next client to simulate a restart.
 * It keeps no more than storage on a disk does: what is pending, a position, and the last number of each sender.
 *
 * @example
 * ```ts
 * import { createMemoryStorage } from 'onceonly/stream'
 *
 * export const storage = createMemoryStorage()
 * ```
 */
export function createMemoryStorage(): ClientStorage {
  const kept = new Map<string, unknown>()
  return createClientStorage({
    load: async () => new Map(kept),
    write: async (changes) => applyChanges(kept, changes),
    stop: async () => {},
  })
}
