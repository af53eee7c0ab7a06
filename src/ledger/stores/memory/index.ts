import { checkOptionNames } from '../../core/option-names.ts'
import { transition } from '../../core/transition.ts'
import { withEncryption } from '../../store/encryption/store.ts'
import type { TransactionalStore } from '../../store/port.ts'
import type { MemoryStoreOptions } from './assemble.ts'
import { assemble } from './assemble.ts'
import type { MemoryTx } from './transactions.ts'
import { createWatchers } from './watch.ts'

export type { MemoryStoreOptions } from './assemble.ts'
export type { MemoryClock } from './clock.ts'
export type { MemoryTx } from './transactions.ts'

/**
 * Runs `transition` itself over a map, in one process: for tests, for development, and for what may be forgotten at a
 * restart. Nothing of it is durable.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { memoryStore } from 'onceonly/memory'
 *
 * const store = memoryStore({ testClock: true })
 * const once = createLedger({ store })
 * await store.clock.advance(60_000, { timeoutMs: 1000 })
 * await once.stop()
 * ```
 */
export function memoryStore(options: MemoryStoreOptions = {}): TransactionalStore<MemoryTx> {
  checkOptionNames('memoryStore', options, ['clock', 'testClock', 'encryption'])
  const store = assemble(options, { machine: transition, watchers: createWatchers() })
  // Nothing of it outlives the process: without keys there is nothing to refuse.
  return options.encryption === undefined ? store : withEncryption(store, options.encryption)
}
