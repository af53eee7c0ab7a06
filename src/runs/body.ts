import { OnceError } from '../ledger/core/errors.ts'
import { checkAttributes } from './attributes.ts'
import type { Branch, Place } from './branch.ts'
import { enter, mustBeFree, valueOf, versionOf } from './branch.ts'
import { queueOfChild, runChild } from './child.ts'
import { childWork } from './child-plan.ts'
import { isCleanUp, isStop } from './clean-up-path.ts'
import type { RunContext } from './context.ts'
import type { Entry, EntryKind, ValueTypes } from './entry.ts'
import { isOpen } from './entry.ts'
import type { Execution } from './execution.ts'
import { LostBranch, never } from './execution.ts'
import { forkAll, forkRace, keepLast } from './fork.ts'
import { perform } from './perform.ts'
import { recordedText } from './recordable.ts'
import { receive } from './signals.ts'
import type { StepFunction, StepOptions } from './steps.ts'
import { checkMs, sleepPlan, workOf } from './steps.ts'

/** What a body holds, for one branch of it. */
export function createContext(execution: Execution, branch: Branch): RunContext {
  const { around, run } = execution
  const at = { runId: run.id, ticks: execution.ticks }

  const inside = (below: Branch) => createContext(execution, below)

  /** Enters the next step. A branch that lost its race, or whose run another worker has, stops here. */
  async function next<T>(id: string, kind: EntryKind, work: (place: Place) => Promise<T>): Promise<T> {
    if (branch.signal.aborted) return never()
    try {
      const place = enter(branch, at, id, kind)
      try {
        if (isStop(run, place)) return await execution.hold(branch.signal)
        execution.mustHaveRoom(place)
        const value = await work(place)
        if (execution.isLeftAfterSteps() && kind !== 'sleep' && !isFinal(place.recorded)) await execution.handOver()
        return value
      } finally {
        branch.pending = null
      }
    } catch (error) {
      if (error instanceof LostBranch) return never()
      return await execution.endIfDiverged(error)
    }
  }

  function value<K extends keyof ValueTypes>(kind: K, make: () => ValueTypes[K]): ValueTypes[K] {
    try {
      return valueOf(branch, kind, make)
    } catch (error) {
      execution.endIfDiverged(error).catch(() => {})
      throw error
    }
  }

  async function step(id: string, given: StepOptions | StepFunction, act?: StepFunction): Promise<unknown> {
    const options = typeof given === 'function' ? {} : given
    const { kind, work } = workOf(id, options, typeof given === 'function' ? given : act)
    return next(id, kind, (place) => perform(execution, place, work))
  }

  return {
    runId: run.id,
    signal: branch.signal,
    step: step as RunContext['step'],
    sleep: async (id, ms) => {
      checkMs(`The sleep ${id}`, ms)
      await next(id, 'sleep', async (place) => {
        const recorded =
          place.recorded ??
          execution.entry(place, {
            state: 'waiting',
            dueAt: (await execution.clock()) + Math.ceil(ms),
            plan: sleepPlan(ms),
          })
        if (place.recorded === null) await execution.put(recorded)
        await pass(execution, branch, recorded.dueAt ?? 0)
      })
    },
    waitFor: async <T>(name: string, options: { readonly timeoutMs?: number } = {}) => {
      const { timeoutMs = null } = options
      if (timeoutMs !== null) checkMs(`The timeoutMs of ${name}`, timeoutMs)
      return next(name, 'signal', (place) => receive<T>(execution, place, name, timeoutMs))
    },
    child: async (definition, options) => {
      around.mustKnow(definition)
      const work = childWork(definition, options)
      const queue = queueOfChild(execution, options)
      return (await next(definition.name, 'child', (place) => runChild(execution, place, work, queue))) as never
    },
    emit: async (name, value) => {
      const plan = recordedText(`The event ${name}`, value)
      await next(name, 'event', (place) => execution.publish(place, plan))
    },
    setAttributes: async (attributes) => {
      checkAttributes(attributes)
      await next('attributes', 'attributes', (place) => execution.setAttributes(place, attributes))
    },
    async continueAsNew(input) {
      if (branch.path !== '')
        throw new OnceError('bad_option', '`continueAsNew` ends the whole run: call it outside of branches.')
      mustBeFree(branch, 'continueAsNew')
      const text = recordedText('The input of the next run', input)
      await keepLast(execution, branch, async () => {}, execution.mustBePassed).catch(execution.endIfDiverged)
      return execution.continueWith(text)
    },
    onCancel: (id, act) => next(id, 'clean-up', (place) => execution.declareCleanUp(place, act)),
    all: (id, branches) => forkAll(execution, inside, branch, id, branches).catch(execution.endIfDiverged) as never,
    race: (id, branches) => next(id, 'race', (place) => forkRace(execution, inside, place, branches)) as never,
    now: () => value('now', () => around.nearNow()),
    random: () => value('random', () => around.runtime.random()),
    uuid: () => value('uuid', () => crypto.randomUUID()),
    version: (name) => versionOf(branch, name),
  }
}

function isFinal(entry: Entry | null): boolean {
  return entry !== null && !isOpen(entry.state)
}

async function pass(execution: Execution, { path, signal }: Branch, dueAt: number): Promise<void> {
  if (execution.run.cancelledAt !== null && !isCleanUp(path)) return
  while ((await execution.clock()) < dueAt) {
    const woken = await execution.wait({ dueAt, unknown: false }, signal)
    // The race is decided, and no caller waits for this branch any more.
    if (woken === 'abandoned') await never()
  }
}
