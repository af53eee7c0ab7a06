import { createLedger, type Ledger, SECOND, type Store } from 'onceonly'
import { type RedisStore, redisStore } from 'onceonly/redis'
import type { Config } from './config.ts'
import type { Log } from './logs.ts'
import type { Loss } from './losses.ts'

/** A store of its own for what runs under a lease: keys of messages and the locks of the guard. */
export interface ClaimsStore {
  readonly store: RedisStore
  stop(): Promise<void>
}

const LOOK = { timeoutMs: 5 * SECOND }

/** Null without a setting: then everything is in the one store. Redis may be away now, or later. */
export async function openClaims(
  { claimsUrl, testClock, encryption }: Config,
  log: Log,
  onLost: (loss: Loss) => void,
): Promise<ClaimsStore | null> {
  if (claimsUrl === null) return null
  const { Redis } = await import('ioredis')
  const client = new Redis(claimsUrl, { lazyConnect: true })
  const store = redisStore(client, {
    testClock,
    ...(encryption === null ? {} : { encryption }),
    on: ({ what, bucket }) =>
      onLost({
        store: 'redis',
        what,
        count: 1,
        line: { event: 'claims.reset', what, bucket },
        about: 'Redis has lost acknowledged claims',
      }),
  })
  void warn(store, log)
  return { store, stop: () => store.stop() }
}

/** Said once, at the start: what the settings of the server may lose is lost without a word later. */
async function warn(store: RedisStore, log: Log): Promise<void> {
  try {
    const { warnings } = await store.durability(LOOK)
    for (const warning of warnings) log.warn({ event: 'claims.durability' }, warning)
  } catch (error) {
    log.warn({ event: 'claims.away', err: error }, 'The store of the claims cannot be asked')
  }
}

/** The ledger of what runs under a lease. Without a store of its own it is the ledger of everything. */
export function leasesOn(
  claims: ClaimsStore | null,
  once: Ledger<unknown>,
  options: Omit<Parameters<typeof createLedger<Store>>[0], 'store'>,
): { readonly ledger: Ledger<unknown>; stop(): Promise<void> } {
  if (claims === null) return { ledger: once, stop: async () => undefined }
  const ledger = createLedger<Store>({ store: claims.store, ...options })
  return { ledger: ledger as Ledger<unknown>, stop: () => ledger.stop() }
}
