import { decodeValue, encodeValue } from '../core/codec.ts'
import { isOnceError, OnceError } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import { backoffMs } from '../core/retry.ts'
import { failureOf } from '../core/verdict.ts'
import type { Loop } from '../ledger/loop.ts'
import { startLoop } from '../ledger/loop.ts'
import { sleep } from '../ledger/runtime.ts'
import { createContext } from './body.ts'
import type { RunDefinition } from './definition.ts'
import type { RunRow } from './entry.ts'
import type { RunEvent } from './events.ts'
import type { Execution, Surroundings, Suspension } from './execution.ts'
import { createExecution } from './execution.ts'
import type { Holding } from './holding.ts'
import type { Leaving } from './writes.ts'

export interface WorkerOptions {
  readonly around: Omit<Surroundings, 'draining'>
  readonly holding: Holding
  readonly definitions: ReadonlyMap<string, RunDefinition>
  /** Runs in memory at once. */
  readonly concurrency: number
  readonly leaseMs: number
  readonly pollMs: number
  emit(event: RunEvent): void
}

/** Takes runs that are due and drives them. Its one lease covers all of them. */
export interface Worker {
  readonly id: string
  /** Enters the list of workers and begins to look for runs. */
  begin(): Promise<void>
  /** Whether it may take one more. */
  hasRoom(): boolean
  /** Drives a run that is already its own. */
  drive(run: RunRow): void
  /** Looks for due runs now, not only when it is time. */
  look(): Promise<void>
  /** Drops a run that was taken away from it; the heartbeat would notice it, later. */
  drop(runId: string): void
  /** Takes nothing new, lets steps under way end, and hands the runs over. */
  stop(): Promise<void>
}

type End =
  | { readonly kind: 'returned'; readonly value: unknown }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'suspended'; readonly suspension: Suspension }
  | { readonly kind: 'lost' }

const LEAVE_RETRY = { baseMs: 50, capMs: 5_000 }

export function createWorker(options: WorkerOptions): Worker {
  const { holding, definitions, concurrency, leaseMs, pollMs, emit } = options
  const { runtime } = options.around
  const id = runtime.newId()
  const executions = new Set<Execution>()
  const driving = new Set<Promise<void>>()
  const loops: Loop[] = []
  let draining = false
  let looking: Promise<void> | null = null
  /** The holder's own deadline, counted from before the heartbeat was sent: it always comes before the store's. */
  let ownUntilMs = 0
  const around: Surroundings = { ...options.around, draining: () => draining }

  async function beat(): Promise<void> {
    const sentAtMs = runtime.monotonicMs()
    if (await holding.beat(id, leaseMs + limits.leaseGraceMs)) {
      ownUntilMs = sentAtMs + leaseMs
      await loseTaken()
    } else if (!draining) {
      // Somebody thought that we were dead, and has our runs. We begin again, with none.
      loseAll()
      await arrive()
    }
    await holding.freeOrphans()
  }

  async function arrive(): Promise<void> {
    const sentAtMs = runtime.monotonicMs()
    await holding.arrive(id, leaseMs + limits.leaseGraceMs)
    ownUntilMs = sentAtMs + leaseMs
  }

  /** A person cancelled them, or somebody else took them: their steps must hear of it. */
  async function loseTaken(): Promise<void> {
    const before = [...executions]
    const held = await holding.held(id)
    for (const execution of before) if (held.get(execution.run.id) !== execution.run.fence) execution.lose()
  }

  function loseAll(): void {
    for (const execution of executions) execution.lose()
  }

  function look(): Promise<void> {
    looking ??= takeDue().finally(() => {
      looking = null
    })
    return looking
  }

  async function takeDue(): Promise<void> {
    const room = concurrency - executions.size
    if (draining || room <= 0) return
    const taken = await holding.take(id, Math.min(room, limits.runTake))
    for (const run of taken) drive(run)
  }

  function drive(run: RunRow): void {
    const driven = driveToEnd(run).catch((error: unknown) => emit({ kind: 'background_failed', runId: run.id, error }))
    driving.add(driven)
    void driven.finally(() => driving.delete(driven))
  }

  async function driveToEnd(run: RunRow): Promise<void> {
    const journal = run.fence === 1 ? { entries: [], signals: [] } : await holding.journal(run.id)
    const execution = createExecution(run, journal, around)
    executions.add(execution)
    try {
      const end = await endOf(execution, definitions.get(run.definition))
      if (end.kind === 'lost') emit({ kind: 'lost', runId: run.id })
      else await leave(execution, await leavingOf(run, around, end))
    } finally {
      executions.delete(execution)
    }
  }

  async function leave(execution: Execution, leaving: Leaving): Promise<void> {
    for (let tries = 1; !execution.lost.aborted; tries++) {
      try {
        const left = await around.writes.leave(leaving)
        emit(
          left ? { kind: 'left', runId: leaving.runId, state: leaving.state } : { kind: 'lost', runId: leaving.runId },
        )
        return
      } catch (error) {
        if (!isOnceError(error) || !error.retryable) throw error
        await sleep(runtime, backoffMs(tries, LEAVE_RETRY, runtime.random()))
      }
    }
  }

  const loop = (everyMs: number, round: () => Promise<void>) =>
    startLoop({
      runtime,
      everyMs: () => everyMs,
      round,
      failed: (error) => emit({ kind: 'background_failed', runId: null, error }),
    })

  return {
    id,
    async begin() {
      await arrive()
      await holding.freeOrphans()
      loops.push(
        loop(leaseMs * limits.heartbeatShare, beat),
        loop(pollMs, look),
        loop(limits.sweepEveryMs, async () => void (await holding.sweep(limits.runKeepMs, limits.runSweepRuns))),
        // A process that was paused, or cut off from the store, must stop by itself.
        loop(leaseMs * limits.heartbeatShare, async () => {
          if (runtime.monotonicMs() >= ownUntilMs) loseAll()
        }),
      )
    },
    hasRoom: () => !draining && executions.size < concurrency,
    drive,
    look,
    drop(runId) {
      for (const execution of executions) if (execution.run.id === runId) execution.lose()
    },
    async stop() {
      draining = true
      await looking?.catch(() => undefined)
      await Promise.race([Promise.all(driving), sleep(runtime, limits.runDrainMs, true)])
      await Promise.all(loops.map((each) => each.stop()))
      loseAll()
      await holding.depart(id)
    },
  }
}

async function endOf(execution: Execution, definition: RunDefinition | undefined): Promise<End> {
  const { run, lost } = execution
  const losing = new Promise<End>((resolve) =>
    lost.addEventListener('abort', () => resolve({ kind: 'lost' }), { once: true }),
  )
  const suspending = execution.suspended.then((suspension): End => ({ kind: 'suspended', suspension }))
  return Promise.race([losing, suspending, bodyOf(execution, definition, run)])
}

async function bodyOf(execution: Execution, definition: RunDefinition | undefined, run: RunRow): Promise<End> {
  if (definition === undefined) {
    // Another process may know it: a deploy is under way. It is tried again after a while.
    return {
      kind: 'suspended',
      suspension: { dueAt: (await execution.around.clock()) + limits.runUnknownMs, unknown: false },
    }
  }
  try {
    const branch = execution.branch('', execution.lost)
    const value = await definition.body(createContext(execution, branch), decodeValue(run.input))
    execution.mustBePassed()
    return { kind: 'returned', value }
  } catch (error) {
    return { kind: 'threw', error }
  }
}

async function leavingOf(run: RunRow, around: Surroundings, end: Exclude<End, { kind: 'lost' }>): Promise<Leaving> {
  const holder = { runId: run.id, fence: run.fence }
  const blank = { dueAt: null, result: null, failure: null, endedAt: null }
  switch (end.kind) {
    case 'suspended': {
      const { dueAt, unknown } = end.suspension
      return { ...holder, ...blank, state: unknown ? 'unknown' : 'sleeping', dueAt }
    }
    case 'returned': {
      const encoded = encodeValue(end.value)
      const endedAt = await around.clock()
      if ('text' in encoded) return { ...holder, ...blank, state: 'succeeded', result: encoded.text, endedAt }
      const error = new OnceError('bad_input', `The result of the run cannot be recorded: ${encoded.problem}.`)
      return { ...holder, ...blank, state: 'failed', failure: JSON.stringify(failureOf(error)), endedAt }
    }
    case 'threw': {
      const failure = failureOf(end.error)
      const data = isOnceError(end.error) ? end.error.details : failure.data
      const text = JSON.stringify(data === undefined ? failure : { ...failure, data })
      return { ...holder, ...blank, state: 'failed', failure: text, endedAt: await around.clock() }
    }
  }
}
