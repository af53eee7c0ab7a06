import { isOnceError } from '../ledger/core/errors.ts'
import { limits } from '../ledger/core/limits.ts'
import { backoffMs } from '../ledger/core/retry.ts'
import type { SqlStore, Transactions } from '../ledger/store/port.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { sleep } from '../runtime/runtime.ts'
import type { Branch, Place } from './branch.ts'
import { createBranch, isWithin } from './branch.ts'
import { childIdOf } from './child-plan.ts'
import type { CleanUp } from './clean-up-path.ts'
import { isCleanUp } from './clean-up-path.ts'
import type { Declarations, Ticks } from './declarations.ts'
import { createDeclarations } from './declarations.ts'
import type { Doubt } from './doubt.ts'
import { createDoubt } from './doubt.ts'
import type { Attributes, Entry, Holder, RunRow, SignalRow } from './entry.ts'
import { isOpen } from './entry.ts'
import type { RunEvent } from './events.ts'
import { remembered } from './failures.ts'
import type { Announced, Followers } from './followers.ts'
import { createAnnounced } from './followers.ts'
import { takenSignals } from './kept.ts'
import type { Line } from './lines.ts'
import { createLines } from './lines.ts'
import { Divergence, neverCame, tooLong } from './problems.ts'
import type { Queue } from './queue.ts'
import { recordedText } from './recordable.ts'
import type { Tree } from './tree.ts'
import type { Suspension, Wait, Woken } from './waits.ts'
import { createWaits } from './waits.ts'
import type { Writes } from './writes.ts'

/** What an execution needs from the process that it runs in. */
export interface Surroundings {
  readonly store: SqlStore
  /** Where transactional steps run: those of the ledger's ORM, or the store's own. */
  readonly transactions: Transactions<unknown>
  /** Whether the steps of this definition get the handle of the ORM. */
  wantsOrm(definition: string): boolean
  readonly runtime: Runtime
  readonly writes: Writes
  readonly tree: Tree
  /** Throws where no process would know what to do for a child. */
  mustKnow(definition: { readonly name: string; readonly body: unknown }): void
  /** Throws where this process does not have the queue. */
  queueOf(wanted: Queue | string): Queue
  /** The store's time, asked. */
  clock(): Promise<number>
  signals(runId: string): Promise<readonly SignalRow[]>
  /** The store's time, as far as this process knows it. */
  nearNow(): number
  /** True once no further step shall begin here. */
  draining(): boolean
  /** False once others may have taken over: a process that was paused finds out by itself. */
  alive(): boolean
  emit(event: RunEvent): void
  /** Leaves runs after their steps, so that the next execution has to come the same way. */
  readonly checkDeterminism: boolean
  readonly followers: Followers
}

/** One run in the memory of one worker, from its taking to its end, or until it can only wait. */
export interface Execution {
  readonly run: RunRow
  readonly around: Surroundings
  readonly ticks: Map<string, number>
  readonly signals: readonly SignalRow[]
  readonly doubt: Doubt
  /** Ids of the signals that some wait of this run has taken. */
  readonly taken: Set<string>
  readonly suspended: Promise<Suspension>
  /** The first step that ends here. */
  readonly progressed: Promise<void>
  readonly lost: AbortSignal
  /** The first difference between what was recorded and the way of the present code. The run ends with it. */
  readonly diverged: Promise<Divergence>
  /** For errors thrown inside the run: a body that catches everything must not continue on another path. */
  endIfDiverged(error: unknown): Promise<never>
  /**
   * For `checkDeterminism`: whether the run is left after a step. An execution that decided a race drives it to its
   * end.
   */
  isLeftAfterSteps(): boolean
  /** The branch of a path: the same one, however often the body reaches it. */
  branch(path: string, signal: AbortSignal): Branch
  /** At the end of the body: it has reached everything that was recorded, except in branches that lost a race. */
  mustBePassed(): void
  entry(place: Place, fields: Pick<Entry, 'state'> & Partial<Entry>): Entry
  /**
   * Durable when it returns. Never returns when another worker has the run by now. Returns what is recorded: for an entry
   * that was unknown, this may be an operator's resolution.
   */
  put(entry: Entry): Promise<Entry>
  /** Records the step that waits for a child, and starts the child. False when there was a run of its id. */
  start(entry: Entry, child: RunRow): Promise<boolean>
  /** The same for a child that is resumed. */
  resume(entry: Entry, child: RunRow): Promise<void>
  /** Remembers what was written elsewhere, in a transaction of the step. */
  kept(entry: Entry): Entry
  /** Throws `run_too_long` where the journal has no room for another line. Nothing was done for it yet. */
  mustHaveRoom(place: Place): void
  /** The steps that the lines before them announce. */
  readonly announced: Pick<Announced, 'came' | 'mayHaveBegun' | 'leftOpen'>
  /** What the record of a step announces. */
  follower(place: Place): string | null
  /** Whether the line before announced this step, so that it begins without an intent of its own. */
  beginsAnnounced(place: Place, start: Entry): boolean
  /** What is recorded of a step now: an operator may have resolved it. */
  look(entry: Entry): Promise<Entry>
  /** Counts as doing something while it lasts, so that the run is not suspended under it. */
  acting<T>(work: () => Promise<T>): Promise<T>
  /** The store's time. Retries until the store answers: a store that is down for a while fails no run. */
  clock(): Promise<number>
  /** The signals of the run as they are now. */
  newSignals(): Promise<readonly SignalRow[]>
  /** Retries what fails only because the store is down. Never returns when another worker has the run by now. */
  insist<T>(ask: () => Promise<T>): Promise<T>
  /** Of a run that was cancelled: returns when this has ended, or every line of the run waits. */
  untilRest(ended: Promise<unknown>): Promise<void>
  /** Follows branches of a race that was decided, as far as they had come before its decision. */
  follow(race: string, before: Ticks, work: () => Promise<void>): Promise<void>
  /** Branches that run side by side, in place of the one that waits for them. */
  fork(count: number, signal: AbortSignal): Line
  /** How often each step below a path was executed, by this execution or by those before it. */
  reached(path: string): ReadonlyMap<string, number>
  /** A race is decided: open steps of its other branches are abandoned, and its next turn starts fresh. */
  decided(race: string, winner: string): Promise<void>
  /**
   * Returns when it is due while other branches still act; else the run is suspended, and this never returns. `abandoned`
   * when its branch lost a race meanwhile, `notified` when an outside change came.
   */
  wait(until: Wait, signal: AbortSignal): Promise<Woken>
  /** Grows with every outside change: a signal came, an operator resolved a step. */
  heard(): number
  /** Whether a branch of this run waits for outside changes. */
  listens(): boolean
  /** An outside change left a mark. The same mark again is ignored. */
  notice(mark: number): void
  /** Records an event that the run emits. Events are recorded one after the other, so that a reader misses none. */
  publish(place: Place, plan: string): Promise<void>
  /** Records attributes with the step that sets them. */
  setAttributes(place: Place, attributes: Attributes): Promise<void>
  /** Records that the run has something to do when it is cancelled. */
  declareCleanUp(place: Place, act: CleanUp['act']): Promise<void>
  readonly declarations: Declarations
  /** Of a run that was cancelled: the body has come as far as it had. */
  readonly stopped: Promise<void>
  /** From now on the run acts again, beside what its body has left waiting. */
  beginCleanUp(): void
  /** The input of the run that takes over, once the body has asked for it. */
  readonly continued: Promise<string>
  /** Ends this run for the next one. Never returns. */
  continueWith(input: string): Promise<never>
  /** Waits forever, and counts as waiting until its branch has lost a race. */
  hold(signal: AbortSignal): Promise<never>
  /** Leaves the rest to another worker. Never returns. */
  handOver(): Promise<never>
  lose(): void
}

const NOTHING_YET = { attempts: 0, dueAt: null, fingerprint: null, plan: null, result: null, leadsTo: null }

/** Ends a branch that lost its race before it wrote a line: no caller waits for it. */
export class LostBranch extends Error {}

const STORE_RETRY = { baseMs: 50, capMs: 5_000 }

/** A promise that never settles, for callers that must not continue; they are garbage collected with it. */
export const never = () => new Promise<never>(() => {})

function charsOf({ plan, result }: Entry): number {
  return (plan?.length ?? 0) + (result?.length ?? 0)
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
  const ticks = new Map<string, number>()
  const open = new Map(journal.entries.filter(({ state }) => isOpen(state)).map((entry) => [entry.key, entry]))
  const doubt = createDoubt(run, journal.entries)
  const lines = createLines()
  const waits = createWaits(runtime, around.nearNow)
  const announced = createAnnounced({
    runtime,
    followers: around.followers,
    definition: run.definition,
    doubted: run.takenBefore === null ? [] : journal.entries,
  })
  const suspended = Promise.withResolvers<Suspension>()
  const progressed = Promise.withResolvers<void>()
  const parted = Promise.withResolvers<Divergence>()
  const losing = new AbortController()
  const stopped = Promise.withResolvers<void>()
  const declarations = createDeclarations(journal.entries)
  const continued = Promise.withResolvers<string>()
  const resting: (() => void)[] = []
  const followed = new Map<string, Ticks>()
  let isCleaning = false
  let published: Promise<unknown> = Promise.resolve()
  let lineCount = journal.entries.length
  let charCount = journal.entries.reduce((sum, entry) => sum + charsOf(entry), 0)
  let positions = journal.entries.reduce((most, { position }) => Math.max(most, position + 1), 0)
  let isFilling = isMostlyFull()
  let active = 0
  let over = false
  let hasRaced = false
  let lastMark: number | null = null
  let difference: Divergence | null = null

  /** Earlier turns, also those of races that are not followed again, are behind us: their steps have lower ticks. */
  function isAhead({ stepId, tick }: Entry): boolean {
    return tick >= (ticks.get(stepId) ?? 0)
  }

  /** Of a race that is followed again only what was before its decision counts: neither later turns, nor what came behind it. */
  function isOfTurn({ branch, stepId, tick }: Entry): boolean {
    return [...followed].every(([race, before]) => !isWithin(branch, race) || tick < (before[stepId] ?? 0))
  }

  function isOutside(above: string, path: string): boolean {
    return [...followed.keys()].some((race) => isWithin(path, race) && !isWithin(above, race))
  }

  function aheadBelow(path: string): Entry | undefined {
    for (const [branch, entries] of byBranch) {
      if (isCleanUp(branch) !== isCleanUp(path)) continue
      const isBelow = branch !== path && isWithin(branch, path)
      const ahead = isBelow ? entries.find((entry) => isAhead(entry) && isOfTurn(entry)) : undefined
      if (ahead !== undefined) return ahead
    }
    return undefined
  }

  function behind(path: string): Entry | undefined {
    for (const { path: above, recorded, passed } of branches.values()) {
      // The body may have come to its end, and that may be recorded, when it was cancelled.
      if (isCleanUp(above) !== isCleanUp(path) || isOutside(above, path)) continue
      if (above !== path && isWithin(path, above) && recorded[passed] !== undefined) return recorded[passed]
    }
    return undefined
  }

  /** Once every line of the run waits and nothing is under way, the run leaves the memory. */
  function rest(): void {
    // Most runs never wait. Who does is looked at later: a branch may be about to end, or to act.
    if (over || waits.count() === 0) return
    runtime.soon(() => {
      if (over || active > 0 || waits.count() === 0 || waits.count() < lines.count()) return
      // A line that follows its branches again continues, before the whole body has been followed.
      if (run.cancelledAt !== null && !isCleaning) return (resting.pop() ?? stopped.resolve)()
      over = true
      waits.end()
      const all = waits.list()
      const times = all.flatMap(({ dueAt }) => (dueAt === null ? [] : [dueAt]))
      const unknown = all.some((each) => each.unknown)
      const handedOver = all.some((each) => each.handedOver === true)
      suspended.resolve({ dueAt: times.length === 0 ? null : Math.min(...times), unknown, handedOver })
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

  function createEntry(place: Place, fields: Pick<Entry, 'state'> & Partial<Entry>): Entry {
    const { key, stepId, tick, kind, values, recorded } = place
    const blank = { ...NOTHING_YET, failures: [] }
    const known = recorded?.position ?? fields.position
    // A line behind the decision of its race would look like a part of what came later.
    if (known === undefined && place.branch.signal.aborted) throw new LostBranch()
    const position = known ?? positions++
    const own = { key, position, branch: place.branch.path, stepId, tick, kind, values }
    const entry = { ...blank, ...recorded, ...own, at: around.nearNow(), ...fields }
    return { ...entry, failures: remembered(entry.failures) }
  }

  async function insist<T>(ask: () => Promise<T>): Promise<T> {
    for (let tries = 1; !over; tries++) {
      try {
        return await ask()
      } catch (error) {
        if (!isOnceError(error) || !error.retryable) throw error
        // A worker that loses the lease meanwhile stops retrying.
        await sleep(runtime, backoffMs(tries, STORE_RETRY, runtime.random()))
      }
    }
    return never()
  }

  /** Whatever the step of a lost branch was doing, it ends here; so does its child. */
  async function abandon(left: Entry): Promise<void> {
    const entry: Entry = { ...left, state: 'abandoned', dueAt: null }
    if (left.kind !== 'child') return void (await put(entry))
    if (await insist(() => around.tree.abandonChild(holder, entry, childIdOf(run.id, left)))) kept(entry)
    else lose()
  }

  /** What was being written while its race was decided is open only now. */
  async function unlessLost<T>(entry: Entry, written: T): Promise<T> {
    if (!open.has(entry.key) || branches.has(entry.branch)) return written
    await abandon(entry)
    return never()
  }

  async function start(entry: Entry, child: RunRow): Promise<boolean> {
    const started = await insist(() => around.tree.startChild(holder, entry, child))
    if (started === 'lost') {
      lose()
      return never()
    }
    kept(entry)
    return started === 'started'
  }

  async function publish(place: Place, plan: string): Promise<void> {
    if (place.recorded !== null) return
    // Its position is taken when it is its turn: events with lower ones are there.
    const turn = published.then(() => put(createEntry(place, { state: 'succeeded', plan })))
    published = turn.catch(() => undefined)
    const { position } = await turn
    const name = place.stepId.slice(place.stepId.lastIndexOf('/') + 1)
    around.emit({ kind: 'emitted', runId: run.id, definition: run.definition, name, cursor: position + 1 })
  }

  async function setAttributes(place: Place, attributes: Attributes): Promise<void> {
    if (place.recorded !== null) return
    const entry = createEntry(place, { state: 'succeeded', plan: recordedText('Attributes', attributes) })
    if (await insist(() => around.tree.setAttributes(holder, entry, attributes))) return void kept(entry)
    lose()
    return never()
  }

  async function declareCleanUp(place: Place, act: CleanUp['act']): Promise<void> {
    const { branch, recorded, stepId, key } = place
    if (recorded === null) {
      const entry = createEntry(place, { state: 'succeeded' })
      if (!(await insist(() => around.tree.declareCleanUp(holder, entry)))) {
        lose()
        return never()
      }
      kept(entry)
    }
    if (!isCleanUp(branch.path)) declarations.add(key, { path: stepId, act })
  }

  async function resume(entry: Entry, child: RunRow): Promise<void> {
    if (await insist(() => around.tree.resumeChild(holder, entry, child))) return void kept(entry)
    lose()
    return never()
  }

  /** The same write again is the same write, also when the answer to the first one was lost. */
  async function put(entry: Entry): Promise<Entry> {
    // Only an unknown entry may be changed by a process that does not hold the run.
    const unknown = open.get(entry.key)?.state === 'unknown'
    const written = await insist(async () =>
      unknown ? await writes.settle(holder, entry) : (await writes.put(holder, entry)) ? entry : null,
    )
    if (written === null) {
      lose()
      return never()
    }
    return kept(written)
  }

  function kept(entry: Entry): Entry {
    doubt.wrote(entry.branch)
    announced.wrote(entry)
    if (isOpen(entry.state)) return keep(entry)
    progressed.resolve()
    if (entry.kind === 'race') hasRaced = true
    charCount += charsOf(entry)
    reportFilling()
    return keep(entry)
  }

  /** A journal that was read in this state was reported before. */
  function reportFilling(): void {
    const before = isFilling
    isFilling = isMostlyFull()
    if (before || !isFilling) return
    around.emit({
      kind: 'journal_filling',
      runId: run.id,
      definition: run.definition,
      lines: lineCount,
      chars: charCount,
    })
  }

  function isMostlyFull(): boolean {
    const share = Math.max(lineCount / limits.runEntries, charCount / limits.runJournalChars)
    return share >= limits.runFullShare
  }

  function mustHaveRoom({ recorded, stepId }: Place): void {
    if (recorded !== null) return
    if (lineCount >= limits.runEntries) throw tooLong(run.id, stepId, `${limits.runEntries} lines`)
    if (charCount >= limits.runJournalChars) throw tooLong(run.id, stepId, `${limits.runJournalChars} characters`)
    lineCount += 1
  }

  async function look({ key }: Entry): Promise<Entry> {
    const found = await insist(() => writes.entry(holder, key))
    if (found !== null) return keep(found)
    lose()
    return never()
  }

  function keep(entry: Entry): Entry {
    if (isOpen(entry.state)) open.set(entry.key, entry)
    else open.delete(entry.key)
    return entry
  }

  function lose(): void {
    over = true
    waits.end()
    losing.abort(new Error(`The run ${run.id} is not this worker's any more.`))
  }

  async function endIfDiverged(error: unknown): Promise<never> {
    if (!(error instanceof Divergence)) throw error
    over = true
    waits.end()
    difference ??= error
    parted.resolve(error)
    return never()
  }

  function handOver(): Promise<never> {
    waits.park({ dueAt: around.nearNow(), unknown: false, handedOver: true })
    rest()
    return never()
  }

  return {
    run,
    around,
    ticks,
    signals: journal.signals,
    doubt,
    taken: takenSignals(journal.entries),
    suspended: suspended.promise,
    progressed: progressed.promise,
    lost: losing.signal,
    diverged: parted.promise,
    endIfDiverged,
    isLeftAfterSteps: () => around.checkDeterminism && !hasRaced,
    branch(path, signal) {
      const known = (byBranch.get(path) ?? []).filter((entry) => isAhead(entry) && isOfTurn(entry))
      const branch =
        branches.get(path) ??
        createBranch(path, known, signal, {
          ahead: () => aheadBelow(path),
          behind: () => behind(path),
          mayHaveLeft: () => announced.mayHaveLeft(path),
        })
      branch.signal = signal
      branches.set(path, branch)
      return branch
    },
    mustBePassed() {
      if (difference !== null) throw difference
      // A race counts the steps of all its branches: what losers left behind is not ahead.
      const left = journal.entries.find(isAhead)
      if (left !== undefined) throw neverCame(left)
    },
    entry: createEntry,
    put: (entry) => acting(async () => unlessLost(entry, await put(entry))),
    start: (entry, child) => acting(async () => unlessLost(entry, await start(entry, child))),
    resume: (entry, child) => acting(async () => unlessLost(entry, await resume(entry, child))),
    kept,
    mustHaveRoom,
    announced,
    follower: (place) => around.followers.of(run.definition, place),
    beginsAnnounced(place, start) {
      const begins = announced.begins(place)
      // It is open for a race that is decided meanwhile, as if it had a line.
      if (begins) keep(start)
      return begins
    },
    look: (entry) => acting(() => look(entry)),
    acting,
    clock: () => acting(() => insist(around.clock)),
    newSignals: () => acting(() => insist(() => around.signals(run.id))),
    insist,
    fork(count, signal) {
      const { ended, join } = lines.fork(count, signal)
      return {
        ended() {
          ended()
          rest()
        },
        join,
      }
    },
    async follow(race, before, work) {
      followed.set(race, before)
      await work()
      followed.delete(race)
    },
    async untilRest(ended) {
      const rested = Promise.withResolvers<void>()
      resting.push(rested.resolve)
      await Promise.race([ended, rested.promise])
      const at = resting.indexOf(rested.resolve)
      if (at >= 0) resting.splice(at, 1)
    },
    reached(path) {
      const found = new Map([...ticks].filter(([stepId]) => stepId.startsWith(`${path}/`)))
      for (const { stepId, tick } of journal.entries) {
        if (stepId.startsWith(`${path}/`)) found.set(stepId, Math.max(found.get(stepId) ?? 0, tick + 1))
      }
      return found
    },
    async decided(race, winner) {
      for (const path of branches.keys()) if (path !== race && isWithin(path, race)) branches.delete(path)
      const left = [...open.values()].filter(
        ({ branch }) => isWithin(branch, race) && branch !== race && !isWithin(branch, `${race}/${winner}`),
      )
      await Promise.all(left.map((entry) => acting(() => abandon(entry))))
    },
    async wait(until, signal) {
      const waiting = waits.begin(until, signal)
      rest()
      const woken = await waiting
      return over ? never() : woken
    },
    heard: waits.heard,
    listens: () => !over && waits.listens(),
    notice(mark) {
      if (over || mark === lastMark) return
      lastMark = mark
      waits.notify()
    },
    publish: (place, plan) => acting(() => publish(place, plan)),
    setAttributes: (place, attributes) => acting(() => setAttributes(place, attributes)),
    declareCleanUp: (place, act) => acting(() => declareCleanUp(place, act)),
    declarations,
    stopped: stopped.promise,
    beginCleanUp() {
      isCleaning = true
      if (waits.count() > 0) lines.fork(2, losing.signal)
    },
    continued: continued.promise,
    continueWith(input) {
      over = true
      waits.end()
      continued.resolve(input)
      return never()
    },
    hold(signal) {
      waits.park({ dueAt: null, unknown: false }, signal)
      rest()
      return never()
    },
    handOver,
    lose,
  }
}
