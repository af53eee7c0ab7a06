import type { Encryption } from '../../store/encryption/options.ts'
import type { TransactionalStore } from '../../store/port.ts'
import { createCallerStatistics } from './callers.ts'
import { createClaims } from './claims.ts'
import type { MemoryClock } from './clock.ts'
import { createTime, systemClock } from './clock.ts'
import type { Core } from './core.ts'
import { stoppedError } from './core.ts'
import { createQueries } from './queries.ts'
import type { Machine } from './tables.ts'
import { createTables } from './tables.ts'
import type { MemoryTx } from './transactions.ts'
import { createTransactions } from './transactions.ts'
import { createUpkeep } from './upkeep.ts'
import type { Watchers } from './watch.ts'
import { createWriter } from './writer.ts'

export interface MemoryStoreOptions {
  /** The store's time, for simulations. @default the system's clock */
  readonly clock?: MemoryClock
  /** Lets `store.clock.advance` move the store's time. @default false */
  readonly testClock?: boolean
  /** Encrypts what the store keeps, as the other stores do. @default none */
  readonly encryption?: Encryption
}

/** What a simulation replaces, so that it sees every change in the moment in which it is made. */
export interface Parts {
  readonly machine: Machine
  readonly watchers: Watchers
}

export function assemble(options: MemoryStoreOptions, { machine, watchers }: Parts): TransactionalStore<MemoryTx> {
  const time = createTime(options.clock ?? systemClock, options.testClock ?? false)
  const writer = createWriter(time)
  let stopped = false
  const checkOpen = () => {
    if (stopped) throw stoppedError()
  }
  const core: Core = {
    tables: createTables(machine),
    time,
    writer,
    watchers,
    takesTurns: options.clock === undefined,
    checkOpen,
  }
  const callers = createCallerStatistics(time)
  return {
    name: 'memory',
    claims: createClaims(core),
    queries: createQueries(core, callers),
    upkeep: createUpkeep(core, callers),
    clock: time.clock,
    transactions: createTransactions(core),
    stop: async () => {
      // New calls are refused from here on; those under way, and those that wait for them, still end.
      stopped = true
      await writer.idle()
      watchers.stop()
    },
  }
}
