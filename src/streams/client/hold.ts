import type { Timer } from '../../runtime/runtime.ts'
import { browserIndexedDb, committed, type IndexedDb, openDatabase } from './indexeddb.ts'
import type { ClientRuntime } from './runtime.ts'
import { createClientRuntime } from './runtime.ts'

/** Keeps other tabs off a storage for as long as this one lives. */
export interface StorageHold {
  readonly name: string
  /** Gives the storage back; other tabs may take it at once. */
  release(): Promise<void>
}

export interface HoldOptions {
  /** How long to wait, in milliseconds, for a tab that is about to go, as the one before a reload is. @default 0 */
  readonly waitMs?: number
  /** Without locks: this tab was silent for so long, frozen for example, that another one has taken the storage. @default none */
  onLost?(): void
  /** Null where there are none, as on plain HTTP. @default navigator.locks */
  readonly locks?: WebLocks | null
  /** Has the lease where there are no locks. @default indexedDB */
  readonly indexedDB?: IndexedDb
  /** Has a note of the lease, for a tab that reloads. @default localStorage */
  readonly localStorage?: LocalStorage
  /** Says when the tab goes. @default window */
  readonly page?: HoldPage
  /** The clock of the machine, which all tabs share. @default Date.now */
  readonly nowMs?: () => number
  /** Time and scheduling; tests give their own. @default the browser's */
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

export interface LocalStorage {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
  removeItem(key: string): void
}

export interface HoldPage {
  addEventListener(event: 'pagehide' | 'pageshow', listen: () => void): void
  removeEventListener(event: 'pagehide' | 'pageshow', listen: () => void): void
}

/** A tab that was silent for this long is gone: browsers let timers of a hidden tab fire once a minute. */
const LEASE_MS = 150_000
/** A quarter of a minute: a tab that can be seen renews its lease ten times before it ends. */
const BEAT_MS = 15_000
/** Between two looks at a storage that another tab holds. */
const LOOK_MS = 100

const NAME = 'onceonly-held:'
const DATABASE = 'onceonly-holds'
const STORE = 'holds'

/**
 * Null when another tab holds the storage. By a lock of `navigator.locks` where there are any; elsewhere by a lease in
 * IndexedDB, which the tab renews while it lives, and which a tab that goes gives back.
 *
 * @example
 * ```ts
 * import { holdStorage } from 'onceonly/stream/browser'
 *
 * const hold = await holdStorage('lobby', { waitMs: 500 })
 * if (hold === null) console.log('Another tab is open.')
 * ```
 */
export async function holdStorage(name: string, options: HoldOptions = {}): Promise<StorageHold | null> {
  const { locks = browserLocks() } = options
  return locks === null ? holdByLease(name, options) : holdByLock(name, locks, options.waitMs ?? 0)
}

function browserLocks(): WebLocks | null {
  return (globalThis as unknown as { navigator?: { locks?: WebLocks } }).navigator?.locks ?? null
}

async function holdByLock(name: string, locks: WebLocks, waitMs: number): Promise<StorageHold | null> {
  const { promise: held, resolve, reject } = Promise.withResolvers<StorageHold | null>()
  const released = Promise.withResolvers<void>()
  const over = locks.request(
    NAME + name,
    waitMs > 0 ? { signal: AbortSignal.timeout(waitMs) } : { ifAvailable: true },
    (lock) => {
      resolve(lock === null ? null : { name, release })
      return lock === null ? undefined : released.promise
    },
  )
  // Nothing but the time for waiting ends a request before it was granted.
  over.catch((error: unknown) => (waitMs > 0 ? resolve(null) : reject(error)))

  async function release(): Promise<void> {
    released.resolve()
    await over
  }

  return held
}

interface Lease {
  readonly holder: string
  readonly beatAtMs: number
}

async function holdByLease(name: string, options: HoldOptions): Promise<StorageHold | null> {
  const browser = globalThis as unknown as HoldPage & { readonly localStorage: LocalStorage }
  const { indexedDB = browserIndexedDb(), nowMs = Date.now, runtime = createClientRuntime() } = options
  const { localStorage = browser.localStorage, page = browser, waitMs = 0 } = options
  const note = NAME + name
  const holder = runtime.newId()
  const database = await openDatabase(indexedDB, DATABASE, STORE)
  let timer: Timer | null = null

  /** One transaction, so that of two tabs one has it. False when the storage is not to be had. */
  async function claim(isMine: (lease: Lease | undefined) => boolean, beatAtMs: number | null): Promise<boolean> {
    const transaction = database.transaction(STORE, 'readwrite')
    const store = transaction.objectStore(STORE)
    const reading = store.get(name)
    let mine = false
    reading.onsuccess = () => {
      mine = isMine(reading.result as Lease | undefined)
      if (!mine) return
      if (beatAtMs === null) store.delete(name)
      else store.put({ holder, beatAtMs } satisfies Lease, name)
    }
    await committed(transaction)
    return mine
  }

  const isHeld = (lease: Lease | undefined) => lease?.holder === holder
  const isFree = (lease: Lease | undefined) =>
    lease === undefined ||
    // A clock that was set back must not make a lease endless.
    Math.abs(nowMs() - lease.beatAtMs) > LEASE_MS ||
    lease.holder === localStorage.getItem(note)

  function beatLater(): void {
    timer = runtime.setTimer(BEAT_MS, beat, true)
  }

  function beat(): void {
    timer?.cancel()
    claim(isHeld, nowMs()).then(
      (mine) => {
        if (timer === null) return
        if (mine) return beatLater()
        end()
        options.onLost?.()
      },
      // A write that fails once is tried again: the lease outlives several.
      () => timer !== null && beatLater(),
    )
  }

  // Written at once, which a transaction of IndexedDB is not: nothing waits for a page that goes.
  const hidden = () => localStorage.setItem(note, holder)
  const shown = () => {
    localStorage.removeItem(note)
    beat()
  }

  function end(): void {
    timer?.cancel()
    timer = null
    page.removeEventListener('pagehide', hidden)
    page.removeEventListener('pageshow', shown)
    database.close()
  }

  const giveUpMs = runtime.monotonicMs() + waitMs
  while (!(await claim(isFree, nowMs()))) {
    if (runtime.monotonicMs() >= giveUpMs) {
      database.close()
      return null
    }
    await new Promise<void>((resolve) => void runtime.setTimer(LOOK_MS, resolve, true))
  }
  localStorage.removeItem(note)
  page.addEventListener('pagehide', hidden)
  page.addEventListener('pageshow', shown)
  beatLater()
  return {
    name,
    async release() {
      if (timer === null) return
      await claim(isHeld, null)
      end()
    },
  }
}
