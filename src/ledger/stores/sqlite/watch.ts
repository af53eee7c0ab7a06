import type { RecordId } from '../../core/identity.ts'
import { SECOND } from '../../core/limits.ts'
import type { Wake, Watch } from '../../store/port.ts'
import type { Engine } from './engine.ts'
import { dataVersionOf } from './engine.ts'

interface Ear {
  readonly topic: string
  wake(): void
}

export interface Watchers {
  watch(wake: Wake): Watch
  /** Called after every commit of this process: wakes who waits here, and notices what others did meanwhile. */
  committed(wakesBefore: number, wakesAfter: number, woken: readonly RecordId[]): void
  /** For other rooms: woken by commits of this process that woke the topic, and by any commit of another process. */
  listen(topic: string, wake: () => void): Watch
  stop(): void
}

/** A joiner in another process learns of a settle this much later at most; a poll takes some microseconds. */
const POLL_MS = 20
/** After this long without a commit the file is quiet, and is polled less often. */
const QUIET_MS = 1 * SECOND
/**
 * How much later at most a listener learns of the first commit of another process to a quiet file. Listeners also poll every
 * second or two; a waiter for a record keeps the file awake, and commits of this process are noticed at once.
 */
const DOZE_MS = 200
const POLL_CALL = { timeoutMs: 1 * SECOND }

const MISSED = -1

export function createWatchers(engine: Engine): Watchers {
  const wakes = new Set<Wake>()
  const ears = new Set<Ear>()
  let timer: NodeJS.Timeout | null = null
  let dozing = false
  /** Since another process last changed the file, by our own polls. */
  let quietMs = 0
  /** How many wakes the file had counted when we last looked; null before the first look. */
  let known: number | null = null
  let dataVersion = -1
  let asking: Promise<void> | null = null

  /** Later: a caller must never be called back from inside its own call. */
  function tell(ids: readonly RecordId[] | null): void {
    queueMicrotask(() => {
      for (const wake of wakes) wake(ids)
    })
  }

  /** Null stands for all topics. */
  function hear(topics: ReadonlySet<string> | null): void {
    const woken = [...ears].filter(({ topic }) => topics?.has(topic) !== false)
    if (woken.length === 0) return
    queueMicrotask(() => {
      for (const ear of woken) if (ears.has(ear)) ear.wake()
    })
  }

  function seen(count: number): void {
    if (known !== null && known !== count) tell(null)
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
        if (version === dataVersion) return
        dataVersion = version
        // Own commits keep no file awake: they wake their listeners themselves.
        if (engine.othersCommitted()) {
          quietMs = 0
          hear(null)
        }
        seen(reader.meta.read().wakes)
      })
    } catch {
      // Whatever happens while the store cannot be asked counts as a wake once it can.
      known = MISSED
    }
  }

  function pollOn(): void {
    if (timer !== null && !dozing) return
    pollIn(POLL_MS)
  }

  function pollIn(ms: number): void {
    if (timer !== null) clearTimeout(timer)
    dozing = ms === DOZE_MS
    const own = setTimeout(() => {
      quietMs += ms
      void poll().finally(() => {
        if (timer === own) pollIn(wakes.size === 0 && quietMs >= QUIET_MS ? DOZE_MS : POLL_MS)
      })
    }, ms)
    timer = own
    timer.unref()
  }

  function pollOff(): void {
    if (timer !== null) clearTimeout(timer)
    timer = null
    dozing = false
    quietMs = 0
    known = null
    dataVersion = -1
  }

  function quieten(): void {
    if (wakes.size + ears.size === 0) pollOff()
  }

  // The next poll finds out whether a write changed anything.
  engine.onWrite((topics) => {
    if (topics.size > 0) hear(topics)
    if (dozing) pollIn(POLL_MS)
  })

  return {
    watch: (wake) => {
      // A function may watch twice, and each of its watches ends by itself.
      const own: Wake = (ids) => wake(ids)
      wakes.add(own)
      pollOn()
      const stop = () => {
        wakes.delete(own)
        quieten()
      }
      return { ready: poll(), stop }
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
      if (wakes.size === 0) return
      // Read inside our own transaction: whatever it counts beyond what we know, others have added.
      seen(wakesBefore)
      known = wakesAfter
      if (woken.length > 0) tell(woken)
    },
    stop: () => {
      wakes.clear()
      ears.clear()
      pollOff()
    },
  }
}
