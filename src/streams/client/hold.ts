import {
  answered,
  browserIndexedDb,
  committed,
  type IndexedDb,
  type IndexedDbDatabase,
  openDatabase,
} from './indexeddb.ts'
import type { ClientRuntime } from './runtime.ts'
import { createClientRuntime } from './runtime.ts'

/** Keeps other tabs off a place for as long as this one lives. */
export interface PlaceHold {
  readonly name: string
  /** Gives the place back; other tabs may take it at once. */
  release(): Promise<void>
}

export interface HoldOptions {
  /** How long to wait for a tab that is about to go, as the one before a reload is. */
  readonly waitMs?: number
  /** Without locks: this tab was silent for so long, frozen for example, that another one has taken the place. */
  onLost?(): void
  /** Null where there are none, as on plain HTTP. Left out: `navigator.locks` where it exists. */
  readonly locks?: WebLocks | null
  readonly indexedDB?: IndexedDb
  /** Left out: the browser's `localStorage`. */
  readonly storage?: HoldStorage
  /** Left out: the window. */
  readonly page?: HoldPage
  /** By the clock of the machine, which all tabs share. */
  readonly nowMs?: () => number
  readonly runtime?: ClientRuntime
}

/** What is used of `navigator.locks`. */
export interface WebLocks {
  request(
    name: string,
    options: { readonly ifAvailable?: boolean; readonly signal?: AbortSignal },
    granted: (lock: unknown) => Promise<void> | undefined,
  ): Promise<unknown>
}

export interface HoldStorage {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
  removeItem(key: string): void
}

export interface HoldPage {
  addEventListener(event: 'pagehide' | 'pageshow', listen: () => void): void
  removeEventListener(event: 'pagehide' | 'pageshow', listen: () => void): void
}

/** A tab that was not heard of for so long is gone: browsers let timers of a hidden tab fire once a minute. */
const LEASE_MS = 150_000
/** A quarter of a minute: a tab that can be seen renews its lease ten times before it ends. */
const BEAT_MS = 15_000
/** Between two looks at a place that another tab holds. */
const LOOK_MS = 100

const NAME = 'onceonly-held:'
const DATABASE = 'onceonly-holds'
const STORE = 'holds'

/**
 * Null when another tab holds the place. By a lock of `navigator.locks` where there are any; elsewhere by a lease in
 * IndexedDB, which the tab renews while it lives, and which a tab that goes gives back.
 */
export async function holdPlace(name: string, options: HoldOptions = {}): Promise<PlaceHold | null> {
  const { locks = browserLocks() } = options
  return locks === null ? holdByLease(name, options) : holdByLock(name, locks, options.waitMs ?? 0)
}

function browserLocks(): WebLocks | null {
  return (globalThis as unknown as { navigator?: { locks?: WebLocks } }).navigator?.locks ?? null
}

async function holdByLock(name: string, locks: WebLocks, waitMs: number): Promise<PlaceHold | null> {
  const held = Promise.withResolvers<PlaceHold | null>()
  const released = Promise.withResolvers<void>()
  const over = locks.request(
    NAME + name,
    waitMs > 0 ? { signal: AbortSignal.timeout(waitMs) } : { ifAvailable: true },
    (lock) => {
      if (lock === null) {
        held.resolve(null)
        return undefined
      }
      held.resolve({
        name,
        async release() {
          released.resolve()
          await over
        },
      })
      return released.promise
    },
  )
  over.catch((error: unknown) => {
    if (isTimeout(error)) held.resolve(null)
    else held.reject(error)
  })
  return held.promise
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && (error.name === 'TimeoutError' || error.name === 'AbortError')
}

interface Lease {
  readonly holder: string
  readonly beatAtMs: number
}

async function holdByLease(name: string, options: HoldOptions): Promise<PlaceHold | null> {
  const { indexedDB = browserIndexedDb(), nowMs = Date.now, runtime = createClientRuntime(), waitMs = 0 } = options
  const storage = options.storage ?? (globalThis as unknown as { localStorage: HoldStorage }).localStorage
  const database = await openDatabase(indexedDB, DATABASE, STORE)
  const holder = runtime.newId()
  const parts: LeaseParts = { name, holder, database, storage, nowMs }
  const giveUpMs = runtime.monotonicMs() + waitMs
  while (!(await take(parts))) {
    if (runtime.monotonicMs() >= giveUpMs) {
      database.close()
      return null
    }
    await new Promise<void>((resolve) => void runtime.setTimer(LOOK_MS, resolve, true))
  }
  return keep(parts, options.page ?? (globalThis as unknown as HoldPage), runtime, () => options.onLost?.())
}

interface LeaseParts {
  readonly name: string
  readonly holder: string
  readonly database: IndexedDbDatabase
  readonly storage: HoldStorage
  nowMs(): number
}

/** One transaction, so that of two tabs one has it. */
async function take({ name, holder, database, storage, nowMs }: LeaseParts): Promise<boolean> {
  const released = storage.getItem(NAME + name)
  let took = false
  const transaction = database.transaction(STORE, 'readwrite')
  const store = transaction.objectStore(STORE)
  const reading = store.get(name)
  reading.onsuccess = () => {
    const lease = reading.result as Lease | undefined
    // A clock that was set back must not make a lease endless.
    const isOver = lease === undefined || Math.abs(nowMs() - lease.beatAtMs) > LEASE_MS || lease.holder === released
    if (!isOver) return
    took = true
    store.put({ holder, beatAtMs: nowMs() } satisfies Lease, name)
  }
  await committed(transaction)
  if (took) storage.removeItem(NAME + name)
  return took
}

/** False when another tab has it now. */
async function beat({ name, holder, database, nowMs }: LeaseParts): Promise<boolean> {
  const transaction = database.transaction(STORE, 'readwrite')
  const store = transaction.objectStore(STORE)
  const reading = store.get(name)
  let mine = false
  reading.onsuccess = () => {
    mine = (reading.result as Lease | undefined)?.holder === holder
    if (mine) store.put({ holder, beatAtMs: nowMs() } satisfies Lease, name)
  }
  await committed(transaction)
  return mine
}

function keep(parts: LeaseParts, page: HoldPage, runtime: ClientRuntime, lost: () => void): PlaceHold {
  const { name, holder, database, storage } = parts
  let over = false
  let timer = runtime.setTimer(BEAT_MS, renew, true)

  function renew(): void {
    timer.cancel()
    beat(parts).then(
      (mine) => {
        if (over) return
        if (mine) timer = runtime.setTimer(BEAT_MS, renew, true)
        else {
          end()
          lost()
        }
      },
      // A write that fails once is tried again: the lease outlives several.
      () => {
        if (!over) timer = runtime.setTimer(BEAT_MS, renew, true)
      },
    )
  }

  // Written at once, which a transaction of IndexedDB is not: nothing waits for a page that goes.
  const hidden = () => storage.setItem(NAME + name, holder)
  const shown = () => {
    storage.removeItem(NAME + name)
    renew()
  }

  function end(): void {
    over = true
    timer.cancel()
    page.removeEventListener('pagehide', hidden)
    page.removeEventListener('pageshow', shown)
    database.close()
  }

  page.addEventListener('pagehide', hidden)
  page.addEventListener('pageshow', shown)
  return {
    name,
    async release() {
      if (over) return
      const transaction = database.transaction(STORE, 'readwrite')
      const store = transaction.objectStore(STORE)
      const lease = (await answered(store.get(name))) as Lease | undefined
      if (lease?.holder === holder) store.delete(name)
      await committed(transaction)
      end()
    },
  }
}
