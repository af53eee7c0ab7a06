import { isOnceError } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import { backoffMs } from '../core/retry.ts'
import type { Runtime } from '../ledger/runtime.ts'
import { sleep } from '../ledger/runtime.ts'
import type { SqlStore } from '../store/port.ts'
import type { Branch, Place } from './branch.ts'
import { createBranch, mustBePassed } from './branch.ts'
import type { Entry, RunRow, SignalRow } from './entry.ts'
import type { Holder, Writes } from './writes.ts'

/** What an execution needs from the process that it runs in. */
export interface Surroundings {
  readonly store: SqlStore
  readonly runtime: Runtime
  readonly writes: Writes
  /** The store's time, asked. */
  clock(): Promise<number>
  /** The store's time, as far as this process knows it. */
  nearNow(): number
  /** True once no further step shall begin here. */
  draining(): boolean
}

/** Why an execution stopped without an end: what it waits for. */
export interface Suspension {
  readonly dueAt: number | null
  readonly unknown: boolean
}

/** One run in the memory of one worker, from its taking to its end, or until it can only wait. */
export interface Execution {
  readonly run: RunRow
  readonly around: Surroundings
  readonly ticks: Map<string, number>
  readonly signals: readonly SignalRow[]
  /** Before this nothing that is not recorded can have happened; null when nobody left anything in the middle. */
  readonly doubtSince: number | null
  /** Ids of the signals that some wait of this run has taken. */
  readonly taken: Set<string>
  readonly suspended: Promise<Suspension>
  readonly lost: AbortSignal
  /** The branch of a path: the same one, however often the body comes to it. */
  branch(path: string, signal: AbortSignal): Branch
  /** At the end of the body: everything that was recorded has been passed, but for branches that lost a race. */
  mustBePassed(): void
  entry(place: Place, fields: Pick<Entry, 'state'> & Partial<Entry>): Entry
  /** Durable when it returns. Never returns when the run is somebody else's by now. */
  put(entry: Entry): Promise<void>
  /** Counts as doing something while it lasts, so that the run is not suspended under it. */
  acting<T>(work: () => Promise<T>): Promise<T>
  /**
   * Returns when it is due while others still act; else the run is suspended, and this never returns. `abandoned` when
   * its branch lost a race meanwhile.
   */
  wait(until: Suspension, signal: AbortSignal): Promise<'due' | 'abandoned'>
  /** Leaves the rest to another worker. Never returns. */
  handOver(): Promise<never>
  lose(): void
}

const PUT_RETRY = { baseMs: 50, capMs: 5_000 }

/** A promise for whoever must not go on: its callers are forgotten with it. */
const never = () => new Promise<never>(() => {})

function abandoned(signal: AbortSignal): Promise<'abandoned'> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve('abandoned'), { once: true }))
}

export function createExecution(
  run: RunRow,
  journal: { readonly entries: readonly Entry[]; readonly signals: readonly SignalRow[] },
  around: Surroundings,
): Execution {
  const { runtime, writes } = around
  const holder: Holder = { runId: run.id, fence: run.fence }
  const byBranch = Map.groupBy(journal.entries, ({ branch }) => branch)
  const branches = new Map<string, Branch>()
  const waiting = new Set<Suspension>()
  const suspended = Promise.withResolvers<Suspension>()
  const losing = new AbortController()
  let positions = journal.entries.reduce((most, { position }) => Math.max(most, position + 1), 0)
  let active = 0
  let over = false

  function rest(): void {
    runtime.soon(() => {
      if (over || active > 0 || waiting.size === 0) return
      over = true
      const all = [...waiting]
      const times = all.flatMap(({ dueAt }) => (dueAt === null ? [] : [dueAt]))
      const unknown = all.some((each) => each.unknown)
      suspended.resolve({ dueAt: times.length === 0 ? null : Math.min(...times), unknown })
    })
  }

  async function acting<T>(work: () => Promise<T>): Promise<T> {
    if (over) return never()
    active += 1
    try {
      return await work()
    } finally {
      active -= 1
      rest()
    }
  }

  async function put(entry: Entry): Promise<void> {
    for (let tries = 1; !over; tries++) {
      try {
        if (await writes.put(holder, entry)) return
        lose()
      } catch (error) {
        if (!isOnceError(error) || !error.retryable) throw error
        // The same write again is the same write; whoever loses the lease meanwhile stops trying.
        await sleep(runtime, backoffMs(tries, PUT_RETRY, runtime.random()))
      }
    }
    return never()
  }

  /** In pieces, because longer timers fire at once; a run that only sleeps is suspended long before. */
  function due(dueAt: number): Promise<'due'> {
    const ms = Math.min(Math.max(0, dueAt - around.nearNow()), limits.runTimerMs)
    return new Promise((resolve) => {
      const timer = runtime.setTimer(ms, () => resolve('due'), true)
      losing.signal.addEventListener('abort', () => timer.cancel(), { once: true })
      void suspended.promise.then(() => timer.cancel())
    })
  }

  function lose(): void {
    over = true
    losing.abort(new Error(`The run ${run.id} is not this worker's any more.`))
  }

  return {
    run,
    around,
    ticks: new Map(),
    signals: journal.signals,
    doubtSince:
      run.takenBefore === null ? null : journal.entries.reduce((last, { at }) => Math.max(last, at), run.takenBefore),
    taken: new Set(),
    suspended: suspended.promise,
    lost: losing.signal,
    branch(path, signal) {
      const branch = branches.get(path) ?? createBranch(path, byBranch.get(path) ?? [], signal)
      branch.signal = signal
      branches.set(path, branch)
      return branch
    },
    mustBePassed() {
      const races = journal.entries.filter(({ kind }) => kind === 'race').map(({ stepId }) => `${stepId}/`)
      for (const [path, recorded] of byBranch) {
        if (races.some((race) => `${path}/`.startsWith(race))) continue
        mustBePassed(branches.get(path) ?? createBranch(path, recorded, losing.signal))
      }
    },
    entry: (place, fields) => {
      const { key, stepId, tick, kind, values, recorded } = place
      const blank = { attempts: 0, dueAt: null, fingerprint: null, plan: null, result: null, failures: [] }
      const position = recorded?.position ?? positions++
      const own = { key, position, branch: place.branch.path, stepId, tick, kind, values }
      const entry = { ...blank, ...recorded, ...own, at: around.nearNow(), ...fields }
      return { ...entry, failures: entry.failures.slice(-limits.runFailures) }
    },
    put: (entry) => acting(() => put(entry)),
    acting,
    async wait(until, signal) {
      if (signal.aborted) return 'abandoned'
      waiting.add(until)
      rest()
      const end = await Promise.race([abandoned(signal), until.dueAt === null ? never() : due(until.dueAt)])
      if (over) return never()
      waiting.delete(until)
      return end
    },
    handOver() {
      waiting.add({ dueAt: around.nearNow(), unknown: false })
      rest()
      return never()
    },
    lose,
  }
}
