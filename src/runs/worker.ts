import { decodeValue } from '../ledger/core/codec.ts'
import { isOnceError, OnceError } from '../ledger/core/errors.ts'
import { limits } from '../ledger/core/limits.ts'
import { backoffMs } from '../ledger/core/retry.ts'
import type { HeldLease } from '../ledger/store/held-leases.ts'
import { createHeldLeases } from '../ledger/store/held-leases.ts'
import { type DueLoop, startDueLoop } from '../runtime/due-loop.ts'
import type { Loop } from '../runtime/loop.ts'
import { startLoop } from '../runtime/loop.ts'
import { sleep } from '../runtime/runtime.ts'
import type { SweepStep } from '../runtime/sweep-loop.ts'
import { startSweepLoop } from '../runtime/sweep-loop.ts'
import type { Admission } from './admission.ts'
import { createContext } from './body.ts'
import { cleanUp } from './clean-up.ts'
import type { RunDefinition } from './definition.ts'
import type { End } from './determinism.ts'
import { createCheck } from './determinism.ts'
import type { RunRow } from './entry.ts'
import { begun, type RunEvent } from './events.ts'
import type { Execution, Surroundings } from './execution.ts'
import { createExecution } from './execution.ts'
import { keepLast } from './fork.ts'
import type { Holding, Survey } from './holding.ts'
import { newRun, nextId } from './new-run.ts'
import { storableFailure, timedOutFailure } from './problems.ts'
import { recordable } from './recordable.ts'
import type { Scheduler } from './scheduler.ts'
import type { Leaving } from './writes.ts'

export interface WorkerOptions {
  readonly around: Omit<Surroundings, 'draining' | 'alive'>
  readonly holding: Holding
  readonly definitions: ReadonlyMap<string, RunDefinition>
  readonly scheduler: Scheduler
  readonly admission: Admission
  /** Runs in memory at once. */
  readonly concurrency: number
  readonly leaseMs: number
  readonly pollMs: number
  emit(event: RunEvent): void
  /** A run was put down, and this is how it stands. */
  left(leaving: Leaving): void
  /** A run was taken away, by a change that is recorded. */
  dropped(runId: string): void
}

/** Takes runs that are due and drives them. Its one lease covers all of them. */
export interface Worker {
  readonly id: string
  /** Enters the list of workers and begins to look for runs. */
  begin(): Promise<void>
  /**
   * A place for one more run, taken before anything is awaited; null when all are taken. It is free again when disposed
   * of.
   */
  reserve(): Disposable | null
  /** Whether it drives this run: then the run's end will be announced. */
  drives(runId: string): boolean
  /** Drives a run that it has just started, in a reserved place: nothing is recorded of it yet. */
  drive(run: RunRow): void
  /** Looks for due runs now, not only when it is time. */
  look(): Promise<void>
  /** Something changed in the store: looks whether a run is due. */
  ring(): void
  /** Drops a run that was taken away from it; the heartbeat would notice it, later. */
  drop(runId: string): void
  /** Takes nothing new, lets steps under way end, and hands the runs over. */
  stop(): Promise<void>
}

type Journal = Awaited<ReturnType<Holding['journal']>>

const LEAVE_RETRY = { baseMs: 50, capMs: 5_000 }

export function createWorker(options: WorkerOptions): Worker {
  const { holding, definitions, scheduler, admission, concurrency, leaseMs, pollMs, emit } = options
  const { runtime } = options.around
  const id = runtime.newId()
  const executions = new Set<Execution>()
  const driving = new Set<Promise<void>>()
  /** The fences of the runs that it drives. */
  const driven = new Map<string, number>()
  /** Places for runs that are being started or taken. */
  let reserved = 0
  /** Runs that it has only by the record, since the last heartbeat. */
  let idle: ReadonlyMap<string, number> = new Map()
  /** Whether the last look left something for the next. */
  let more = false
  /** A run on its last takeover, until it has recorded something. There is one at a time. */
  let suspect: { readonly run: RunRow; readonly timer: { cancel(): void } } | null = null
  /** It has this process for itself. */
  let isAlone = false
  /** When a busy process asks again for such a run. */
  let askLastAtMs = 0
  const check = createCheck(options.around.checkDeterminism)
  const loops: Loop[] = []
  let due: DueLoop | null = null
  let draining = false
  let looking: Promise<void> | null = null
  /** A poll was requested since the last one began. */
  let again = false
  /** The store keeps the lease a grace period longer than the worker does. */
  const storeLeaseMs = leaseMs + limits.leaseGraceMs
  const leases = createHeldLeases<string, true, true>({
    runtime,
    renew: async () => ((await holding.workers.renew(id, storeLeaseMs)) ? null : true),
    endOf: () => true,
    ended(_id, _end, loss) {
      loseAll()
      // Another worker found this one dead and has its runs: it begins again, with none.
      if (loss !== null && !draining) arrive().catch(failed)
    },
    failed,
    recovered: (failures) => emit({ kind: 'background_recovered', failures }),
  })
  let lease: HeldLease<true> | null = null
  const alive = () => lease?.lasts() === true
  const around: Surroundings = { ...options.around, draining: () => draining, alive }

  function failed(error: unknown): void {
    emit({ kind: 'background_failed', runId: null, error })
  }

  async function upkeep(): Promise<void> {
    const wasAlive = alive()
    if (!wasAlive && !draining) await arrive()
    const { orphans, strays } = await (wasAlive ? compareHeld() : holding.survey(id))
    if (orphans) await freeOrphans()
    if (strays) await passDown()
  }

  async function passDown(): Promise<void> {
    for (const runId of await around.tree.passDown()) drop(runId)
  }

  async function freeOrphans(): Promise<void> {
    for (const parked of await holding.freeOrphans()) emit({ kind: 'parked', ...parked })
  }

  async function arrive(): Promise<void> {
    const sentAtMs = leases.nowMs()
    await holding.workers.join(id, storeLeaseMs)
    lease?.letGo()
    lease = leases.hold(id, { sentAtMs, leaseMs })
  }

  /**
   * Runs that an operator cancelled, or that another worker took, are dropped here. Others are ours by the record alone,
   * because the answer to a write was lost: found twice in a row, they are put down.
   */
  async function compareHeld(): Promise<Survey> {
    const before = [...executions]
    const survey = await holding.survey(id)
    const { held } = survey
    for (const execution of before) if (held.get(execution.run.id) !== execution.run.fence) execution.lose()
    const undriven = [...held].filter(([runId, fence]) => driven.get(runId) !== fence)
    const stuck = undriven.filter(([runId, fence]) => idle.get(runId) === fence)
    idle = new Map(undriven)
    if (stuck.length === 0) return survey
    await holding.release(stuck.map(([runId, fence]) => ({ runId, fence })))
    await look()
    return survey
  }

  function loseAll(): void {
    for (const execution of executions) execution.lose()
  }

  /** Never rejects: a failed poll is reported once, however many callers asked for it while the store was silent. */
  function look(): Promise<void> {
    again = true
    looking ??= lookAround()
      .catch(failed)
      .finally(() => {
        looking = null
      })
    return looking
  }

  /** When the next run or tick is due, from now; null when none is. */
  async function dueIn(): Promise<number | null> {
    const { dueMs, timeoutMs } = await holding.dueIn()
    if (timeoutMs !== null && timeoutMs <= 0) await timeOut()
    const times = [dueMs, timeoutMs, await scheduler.dueIn(), await admission.dueIn()].flatMap((ms) => ms ?? [])
    return times.length === 0 ? null : Math.min(...times)
  }

  async function timeOut(): Promise<void> {
    const late = await holding.timeOut()
    for (const { runId, definition, ended } of late) {
      drop(runId)
      if (ended) emit({ kind: 'left', runId, definition, state: 'failed' })
      more = true
    }
    // A crash before this leaves their children to the next upkeep of any worker.
    if (late.length > 0) await passDown()
    // Another process may have ended one that is driven here.
    const now = around.nearNow()
    if ([...executions].some(({ run: { deadlineAt } }) => deadlineAt !== null && deadlineAt <= now)) await compareHeld()
  }

  async function poll(): Promise<number | null> {
    const dueMs = await dueIn()
    if (!more && (dueMs === null || dueMs > 0)) return dueMs
    await look()
    return await dueIn()
  }

  /** A wake during a poll repeats it, because the poll may have just missed the cause. */
  async function lookAround(): Promise<void> {
    while (again) {
      again = false
      await hearMarks()
      await startScheduled()
      await takeLast()
      await takeDue()
      await takeQueued()
    }
  }

  async function startScheduled(): Promise<void> {
    if (draining) return
    const { started, cancelled, failed: errors } = await scheduler.start()
    for (const error of errors) failed(error)
    for (const runId of cancelled) drop(runId)
    for (const run of started) emit(begun(run))
  }

  function drop(runId: string): void {
    for (const execution of executions) if (execution.run.id === runId) execution.lose()
    options.dropped(runId)
  }

  /** What happened to runs in memory, where one of their branches waits for it while others act. */
  async function hearMarks(): Promise<void> {
    const listening = [...executions].filter((execution) => execution.listens())
    if (listening.length === 0) return
    const marks = await holding.marks(id)
    for (const execution of listening) {
      const mark = marks.get(execution.run.id)
      if (mark !== undefined) execution.notice(mark)
    }
  }

  async function takeDue(): Promise<void> {
    do {
      using places = reserve(limits.runTake)
      more = true
      if (places === null) return
      const taken = await holding.take(id, places.count)
      for (const run of taken) drive(run, () => holding.journal(run.id))
      more = taken.length === places.count
    } while (more)
  }

  /** Runs that their queues let in now. */
  async function takeQueued(): Promise<void> {
    let left: boolean
    do {
      using places = reserve(limits.runTake)
      if (places === null) {
        more = true
        return
      }
      const taken = await admission.take(id, places.count)
      for (const run of taken.runs) {
        emit({ kind: 'started', runId: run.id, definition: run.definition })
        drive(run, () => holding.journal(run.id))
      }
      left = taken.more
    } while (left)
  }

  /**
   * A run that several workers did not survive is driven by a process that has nothing else, so that nothing else is lost
   * with it. When no process is idle for a while, a busy one takes it.
   */
  async function takeLast(): Promise<void> {
    const isIdle = driven.size + reserved === 0
    if (suspect !== null || (!isIdle && runtime.monotonicMs() < askLastAtMs)) return
    using place = reserve(1)
    if (place === null) return
    askLastAtMs = runtime.monotonicMs() + limits.runAloneMs
    const run = await holding.takeLast(id, isIdle ? 0 : limits.runAloneMs)
    if (run === null) return
    isAlone = driven.size + reserved === 1
    const timer = runtime.setTimer(limits.runAloneMs, endAlone, true)
    suspect = { run, timer }
    drive(run, () => holding.journal(run.id))
  }

  /** It has recorded something, or is not here any more. */
  function isNoSuspect(run: RunRow): void {
    if (suspect?.run !== run) return
    suspect.timer.cancel()
    suspect = null
    endAlone()
  }

  function endAlone(): void {
    isAlone = false
    if (!draining) void look()
  }

  /** Counted before anything is awaited, so that starting and taking never have one place between them. */
  function reserve(most: number): (Disposable & { readonly count: number }) | null {
    const count = draining || isAlone || !alive() ? 0 : Math.min(concurrency - driven.size - reserved, most)
    if (count <= 0) return null
    reserved += count
    return {
      count,
      [Symbol.dispose]() {
        reserved -= count
      },
    }
  }

  /** A place is free: what the last look left may be taken now. */
  function freed(): void {
    if (more && !draining) void look()
  }

  function drive(run: RunRow, journal = async () => nothingYet): void {
    driven.set(run.id, run.fence)
    if (run.deadlineAt !== null) due?.ring()
    const drives = driveToEnd(run, journal)
      .catch((error: unknown) => emit({ kind: 'background_failed', runId: run.id, error }))
      .finally(() => {
        driving.delete(drives)
        if (driven.get(run.id) === run.fence) driven.delete(run.id)
        isNoSuspect(run)
        freed()
      })
    driving.add(drives)
  }

  async function driveToEnd(run: RunRow, journal: () => Promise<Journal>): Promise<void> {
    const execution = createExecution(run, await journal(), around)
    const definition = definitions.get(run.definition)
    if (definition === undefined) return
    executions.add(execution)
    if (run === suspect?.run) void execution.progressed.then(() => isNoSuspect(run))
    try {
      const end = check(run, await endOf(execution, definition))
      if (end.kind === 'lost') emit({ kind: 'lost', runId: run.id })
      else await leave(execution, run.definition, leavingOf(execution, end, definition))
      if (end.kind === 'suspended' && end.suspension.handedOver === true && !draining) more = true
    } finally {
      executions.delete(execution)
      // A step that the body did not await may still act: its result belongs to no run, and must not be insisted on.
      execution.lose()
    }
  }

  async function leave(execution: Execution, definition: string, leaving: Leaving): Promise<void> {
    for (let tries = 1; !execution.lost.aborted; tries++) {
      try {
        const left = await around.writes.leave({ ...leaving, wakes: draining })
        // From here on callers must read the record.
        if (driven.get(leaving.runId) === leaving.fence) driven.delete(leaving.runId)
        if (left) options.left(leaving)
        if (left && leaving.dueAt !== null) due?.ring()
        // The place that it had in its queue is free.
        if (left && leaving.ended && execution.run.queue !== null) more = true
        const { runId, state } = leaving
        emit(left ? { kind: 'left', runId, definition, state } : { kind: 'lost', runId })
        return
      } catch (error) {
        if (!isOnceError(error) || !error.retryable) throw error
        await sleep(runtime, backoffMs(tries, LEAVE_RETRY, runtime.random()))
      }
    }
  }

  async function sweep(): Promise<SweepStep> {
    const removed = await holding.sweep(limits.runKeepMs, limits.runSweepRuns)
    return { more: removed === limits.runSweepRuns, waitedMs: 0 }
  }

  return {
    id,
    async begin() {
      await arrive()
      await freeOrphans()
      await scheduler.register()
      await admission.register()
      const leastMs = Math.min(pollMs, limits.duePollMs)
      due = startDueLoop({ runtime, mostMs: pollMs, leastMs, round: poll, failed })
      loops.push(
        due,
        startLoop({ runtime, everyMs: () => leaseMs * limits.heartbeatShare, round: upkeep, failed }),
        startSweepLoop({ runtime, everyMs: limits.sweepEveryMs, share: limits.sweepShare, step: sweep, failed }),
      )
    },
    reserve() {
      const place = reserve(1)
      if (place === null) return null
      return {
        [Symbol.dispose]() {
          place[Symbol.dispose]()
          freed()
        },
      }
    },
    drives: (runId) => driven.has(runId),
    drive: (run) => drive(run),
    look,
    ring: () => due?.soon(),
    drop,
    async stop() {
      draining = true
      await looking?.catch(() => undefined)
      await Promise.race([Promise.all(driving), sleep(runtime, limits.runDrainMs, true)])
      await Promise.all(loops.map((each) => each.stop()))
      lease?.letGo()
      loseAll()
      await holding.depart(id)
    },
  }
}

/** Of a run that was only just started. */
const nothingYet: Journal = { entries: [], signals: [] }

async function endOf(execution: Execution, definition: RunDefinition): Promise<End> {
  const { run, lost } = execution
  const losing = new Promise<End>((resolve) =>
    lost.addEventListener('abort', () => resolve({ kind: 'lost' }), { once: true }),
  )
  const suspending = execution.suspended.then((suspension): End => ({ kind: 'suspended', suspension }))
  const parting = execution.diverged.then((error): End => ({ kind: 'threw', error }))
  const continuing = execution.continued.then((input): End => ({ kind: 'continued', input }))
  return Promise.race([losing, suspending, parting, continuing, bodyOf(execution, definition, run)])
}

async function bodyOf(execution: Execution, definition: RunDefinition, run: RunRow): Promise<End> {
  const branch = execution.branch('', execution.lost)
  const body = async () => definition.body(createContext(execution, branch), decodeValue(run.input))
  if (run.cancelledAt !== null) return await cleanUp(execution, body, (below) => createContext(execution, below))
  try {
    return { kind: 'returned', value: await keepLast(execution, branch, body, execution.mustBePassed) }
  } catch (error) {
    return { kind: 'threw', error }
  }
}

/** The row of the run that takes over: of today's version, with the same parent, and in the same place of a queue. */
function nextOf({ run, taken, around }: Execution, definition: RunDefinition, input: string): Leaving['next'] {
  const given = { runId: nextId(run), input: decodeValue(input) }
  const { parent, ifParentEnds, id: continues } = run
  const row = newRun(definition, given, { worker: null, now: around.nearNow(), parent, ifParentEnds, continues })
  return { row: { ...row, queue: run.queue }, taken: [...taken] }
}

function leavingOf(execution: Execution, end: Exclude<End, { kind: 'lost' }>, definition: RunDefinition): Leaving {
  const { run, announced } = execution
  const holder = { runId: run.id, fence: run.fence, parent: run.parent, next: null, leftOpen: announced.leftOpen() }
  const blank = { dueAt: null, result: null, failure: null, ended: true }
  const failed = (error: unknown): Leaving => {
    const failure = storableFailure(error, isOnceError(error) ? error.details : undefined)
    return { ...holder, ...blank, state: 'failed', failure: JSON.stringify(failure) }
  }
  switch (end.kind) {
    case 'suspended': {
      const { dueAt, unknown, handedOver = false } = end.suspension
      const leftOpen = handedOver && holder.leftOpen === 'by_none' ? 'by_an_earlier_worker' : holder.leftOpen
      return { ...holder, ...blank, state: unknown ? 'unknown' : 'sleeping', dueAt, ended: false, leftOpen }
    }
    case 'returned': {
      const encoded = recordable(end.value)
      if ('problem' in encoded) return failed(new OnceError('bad_input', `The result of the run ${encoded.problem}.`))
      return { ...holder, ...blank, state: 'succeeded', result: encoded.text }
    }
    case 'continued':
      return {
        ...holder,
        ...blank,
        state: 'succeeded',
        result: end.input,
        next: nextOf(execution, definition, end.input),
      }
    case 'cleaned': {
      if (run.timedOut) return { ...holder, ...blank, state: 'failed', failure: JSON.stringify(timedOutFailure()) }
      return { ...holder, ...blank, state: 'cancelled' }
    }
    case 'threw':
      return failed(end.error)
  }
}
