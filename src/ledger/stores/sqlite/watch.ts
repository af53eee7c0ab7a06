import type { RecordId } from '../../core/identity.ts'
import { SECOND } from '../../core/limits.ts'
import type { Wake, Watch } from '../../store/port.ts'
import { EVERY_TOPIC, type WakeCause } from '../../store/sql.ts'
import type { Waiters } from '../../store/waiters.ts'
import { createWaiters } from '../../store/waiters.ts'
import type { Engine } from './engine.ts'
import { dataVersionOf } from './engine.ts'
import { createFileWatch } from './file-watch.ts'

interface Ear {
  readonly topic: string
  wake(cause: WakeCause): void
}

export interface Watchers {
  /** Those who watch records. */
  readonly waiters: Pick<Waiters, 'watches'>
  watch(wake: Wake): Watch
  /** Called after every commit of this process while records are watched: wakes, and notices what others did meanwhile. */
  committed(wakesBefore: number, wakesAfter: number, woken: readonly RecordId[]): void
  /**
   * For other rooms: woken at once by commits of this process that woke the topic and by any commit of another process,
   * and a second later by any other commit of this process.
   */
  listen(topic: string, wake: (cause: WakeCause) => void): Watch
  /** Nothing is watched or listened to. */
  isIdle(): boolean
  stop(): void
}

/** A joiner in another process learns of a settle this much later at most; a poll takes some microseconds. */
const POLL_MS = 20
/** After this long without a commit of another process the file is quiet, and its changes are waited for. */
const QUIET_MS = 1 * SECOND
/**
 * How often a quiet file is polled where its changes are not announced. A waiter for a record keeps the file awake, and
 * commits of this process are noticed at once.
 */
const DOZE_MS = 200
/** How often it is polled where they are, as a check on what announces them. */
const CHECK_MS = 5 * SECOND
/** After the log was written to, the commit is waited for so long: longer than a disk takes to sync. */
const EXPECT_MS = 1 * SECOND
/** Commits of this process since the last poll, from which on announcements of them cost more than polls. */
const BUSY_WRITES = 2
/** Listeners hear this much later of a commit of this process that did not wake their topic. */
const STIR_MS = 1 * SECOND
const POLL_CALL = { timeoutMs: 1 * SECOND }

const MISSED = -1

export function createWatchers(engine: Engine, makeFileWatch = createFileWatch, checkMs = CHECK_MS): Watchers {
  const waiters = createWaiters()
  const ears = new Set<Ear>()
  let timer: NodeJS.Timeout | null = null
  let dozing = false
  /** Since another process last changed the file, by our own polls. */
  let quietMs = 0
  /** How many wakes the file had counted when we last looked; null before the first look. */
  let known: number | null = null
  let dataVersion = -1
  let asking: Promise<void> | null = null
  /** Of this process, since the last poll. */
  let writes = 0
  let stirring: NodeJS.Timeout | null = null
  let stirredVersion = -1
  // Every commit is written to the log first.
  const file = makeFileWatch(`${engine.path}-wal`, announced)
  /** For how much longer a commit is expected. */
  let expectingMs = 0
  /** This process renewed a lease since the last poll. */
  let wroteQuietly = false
  /** Since the last change that was found, or that did not come. */
  let wasAnnounced = false
  /** The changes found last were announced: only then may polls be rare. */
  let isAnnounced = false

  function announced(): void {
    wasAnnounced = true
    isAnnounced = true
    // What this process wrote is announced, too; a moment later a poll also sees what another wrote right after it.
    if (writes > 0 || wroteQuietly) {
      if (dozing) pollIn(POLL_MS)
      return
    }
    // The log is written before its transaction commits, and the commit itself is not announced.
    expectingMs = EXPECT_MS
    if (dozing) pollNow()
  }

  /** Null stands for all topics. */
  function hear(topics: ReadonlySet<string> | null): void {
    const isAny = topics === null || topics.has(EVERY_TOPIC)
    const woken = [...ears].filter(({ topic }) => isAny || topics.has(topic))
    if (woken.length === 0) return
    queueMicrotask(() => {
      for (const ear of woken) if (ears.has(ear)) ear.wake(isAny ? 'change' : 'topic')
    })
  }

  function seen(count: number): void {
    if (known !== null && known !== count) waiters.wakeSoon(null)
    known = count
  }

  function poll(): Promise<void> {
    asking ??= ask().finally(() => {
      asking = null
    })
    return asking
  }

  /** `data_version` moves with every commit of another connection; only then is the count of wakes worth reading. */
  async function ask(): Promise<void> {
    try {
      await engine.read(POLL_CALL, (reader) => {
        const version = dataVersionOf(reader)
        const hasChanged = version !== dataVersion
        dataVersion = version
        if (hasChanged && file.isArmed()) isAnnounced = wasAnnounced
        if (hasChanged) expectingMs = 0
        if (expectingMs <= 0) wasAnnounced = false
        wroteQuietly = false
        // Own commits keep no file awake: they wake their listeners themselves.
        if (hasChanged && engine.othersCommitted()) {
          quietMs = 0
          hear(null)
        } else if (writes === 0 && stirring === null) {
          // A renewal of this process, which no listener needs to hear of.
          stirredVersion = version
        }
        if (waiters.watches.size > 0 && (hasChanged || known === null)) seen(reader.meta.read().wakes)
      })
    } catch {
      // Whatever happens while the store cannot be asked counts as a wake once it can.
      if (waiters.watches.size > 0) known = MISSED
      dataVersion = -1
    }
  }

  /** Commits that changed nothing are not worth a look. */
  async function stir(): Promise<void> {
    stirring = null
    const version = await engine.read(POLL_CALL, dataVersionOf).catch(() => -1)
    if (version !== -1 && version === stirredVersion) return
    stirredVersion = version
    hear(null)
  }

  function pollOn(): void {
    engine.onWrite(noteWrite)
    if (timer !== null && !dozing) return
    pollIn(POLL_MS)
  }

  function pollIn(ms: number): void {
    if (timer !== null) clearTimeout(timer)
    dozing = ms >= DOZE_MS
    timer = setTimeout(() => {
      quietMs += ms
      expectingMs -= ms
      pollNow()
    }, ms)
    timer.unref()
  }

  function pollNow(): void {
    const own = timer
    dozing = false
    void poll().finally(() => {
      if (timer === own && own !== null) pollIn(restMs())
    })
  }

  function restMs(): number {
    const isBusy = writes >= BUSY_WRITES
    const isQuiet = waiters.watches.size === 0 && quietMs >= QUIET_MS
    writes = 0
    if (!isQuiet || isBusy) {
      file.disarm()
      return isQuiet ? DOZE_MS : POLL_MS
    }
    if (file.isArmed() && expectingMs > 0) return POLL_MS
    if (file.isArmed()) return isAnnounced ? checkMs : DOZE_MS
    file.arm()
    // What was written before it was armed is not announced: once more.
    return file.isArmed() ? POLL_MS : DOZE_MS
  }

  function pollOff(): void {
    engine.onWrite(null)
    writes = 0
    wroteQuietly = false
    if (timer !== null) clearTimeout(timer)
    if (stirring !== null) clearTimeout(stirring)
    timer = null
    stirring = null
    file.disarm()
    dozing = false
    quietMs = 0
    known = null
    dataVersion = -1
  }

  function quieten(): void {
    if (waiters.watches.size + ears.size === 0) pollOff()
    if (waiters.watches.size === 0) known = null
  }

  /** The next poll finds out whether a write changed anything. Without a poll nothing is noted. */
  function noteWrite(topics: ReadonlySet<string>, isQuiet: boolean): void {
    if (isQuiet) {
      wroteQuietly = true
      return
    }
    writes += 1
    if (topics.size > 0) hear(topics)
    if (dozing) pollIn(POLL_MS)
    if (ears.size === 0 || stirring !== null) return
    stirring = setTimeout(() => void stir(), STIR_MS)
    stirring.unref()
  }

  return {
    waiters,
    watch: (wake) => {
      const end = waiters.add(wake)
      pollOn()
      const stop = () => {
        end()
        quieten()
      }
      // A poll that is under way may have begun before there was anything to watch for.
      return { ready: (asking ?? Promise.resolve()).then(poll), stop }
    },
    listen: (topic, wake) => {
      const own = { topic, wake }
      ears.add(own)
      pollOn()
      const stop = () => {
        ears.delete(own)
        quieten()
      }
      return { ready: poll(), stop }
    },
    committed: (wakesBefore, wakesAfter, woken) => {
      if (waiters.watches.size === 0) return
      // Read inside our own transaction: whatever it counts beyond what we know, others have added.
      seen(wakesBefore)
      known = wakesAfter
      if (woken.length > 0) waiters.wakeSoon(woken)
    },
    isIdle: () => waiters.watches.size + ears.size === 0,
    stop: () => {
      waiters.clear()
      ears.clear()
      pollOff()
    },
  }
}
