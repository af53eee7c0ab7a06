import { Redis } from 'ioredis'
import type { Ledger, Store } from 'onceonly'
import { createLedger } from 'onceonly'
import { redisStore } from 'onceonly/redis'
import { sqliteStore } from 'onceonly/sqlite'

/** Where the processes of a test meet. */
export type Place =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'redis'; readonly url: string; readonly prefix: string }

export interface OpenPlace {
  readonly store: Store
  readonly ledger: Ledger<unknown>
  end(): Promise<void>
}

export function openPlace(place: Place): OpenPlace {
  if (place.kind === 'sqlite') {
    const store = sqliteStore(place.path, { testClock: true })
    const ledger = createLedger({ store, background: false }) as Ledger<unknown>
    return { store, ledger, end: () => ledger.stop().then(() => store.stop()) }
  }
  const client = new Redis(place.url)
  const store = redisStore(client, { prefix: place.prefix, testClock: true })
  const ledger = createLedger({ store, background: false }) as Ledger<unknown>
  const end = async () => {
    await ledger.stop()
    await store.stop()
    client.disconnect()
  }
  return { store, ledger, end }
}

export const who = (key: string) => ({ tenant: 'acme', caller: 'ann', key })
