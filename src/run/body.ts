import { decodeValue, encodeValue } from '../core/codec.ts'
import { OnceError } from '../core/errors.ts'
import { limits } from '../core/limits.ts'
import type { Branch, Place } from './branch.ts'
import { enter, valueOf, versionOf } from './branch.ts'
import type { Received, RunContext } from './context.ts'
import type { Execution } from './execution.ts'
import { forkAll, forkRace } from './fork.ts'
import { perform } from './perform.ts'
import type { StepFunction, StepOptions } from './steps.ts'
import { sleepPlan, workOf } from './steps.ts'

/** What a body holds, for one branch of it. */
export function createContext(execution: Execution, branch: Branch): RunContext {
  const { around, run } = execution
  const at = { runId: run.id, ticks: execution.ticks }

  const inside = (below: Branch) => createContext(execution, below)

  async function alone<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } finally {
      branch.pending = null
    }
  }

  async function step(id: string, given: StepOptions | StepFunction, act?: StepFunction): Promise<unknown> {
    const options = typeof given === 'function' ? {} : given
    const { kind, work } = workOf(id, options, typeof given === 'function' ? given : act)
    const place = enter(branch, at, id, kind)
    return alone(() => perform(execution, place, work))
  }

  return {
    runId: run.id,
    signal: branch.signal,
    step: step as RunContext['step'],
    sleep: async (id, ms) => {
      if (!(ms >= 0 && ms <= limits.longestMs)) throw new OnceError('bad_option', `${id} cannot sleep for ${ms} ms.`)
      const place = enter(branch, at, id, 'sleep')
      await alone(async () => {
        const recorded =
          place.recorded ??
          execution.entry(place, { state: 'waiting', dueAt: (await around.clock()) + ms, plan: sleepPlan(ms) })
        if (place.recorded === null) await execution.put(recorded)
        await until(execution, branch, recorded.dueAt ?? 0)
      })
    },
    waitFor: <T>(name: string, options: { readonly timeoutMs?: number } = {}) => {
      const place = enter(branch, at, name, 'signal')
      return alone(() => receive<T>(execution, place, name, options.timeoutMs ?? null))
    },
    all: (id, branches) => forkAll(execution, inside, branch, id, branches) as never,
    race: (id, branches) => {
      const place = enter(branch, at, id, 'race')
      return alone(() => forkRace(execution, inside, place, branches)) as never
    },
    now: () => valueOf(branch, 'now', () => around.nearNow()),
    random: () => valueOf(branch, 'random', () => around.runtime.random()),
    uuid: () => valueOf(branch, 'uuid', () => crypto.randomUUID()),
    version: (name) => versionOf(branch, name),
  }
}

async function until(execution: Execution, { signal }: Branch, dueAt: number | null): Promise<void> {
  while (dueAt === null || (await execution.acting(() => execution.around.clock())) < dueAt) {
    const woken = await execution.wait({ dueAt, unknown: false }, signal)
    // The race is over without us, and nobody waits for this branch any more.
    if (woken === 'abandoned') await new Promise<never>(() => {})
  }
}

async function receive<T>(
  execution: Execution,
  place: Place,
  name: string,
  timeoutMs: number | null,
): Promise<Received<T>> {
  const { around, taken } = execution
  const read = (result: string | null) => decodeValue(result ?? '') as { id: string | null; received: Received<T> }
  if (place.recorded?.state === 'succeeded') return read(place.recorded.result).received
  const dueAt = place.recorded?.dueAt ?? (timeoutMs === null ? null : (await around.clock()) + timeoutMs)
  const waiting = execution.entry(place, { state: 'waiting', dueAt })
  const keep = async (id: string | null, received: Received<T>) => {
    const encoded = encodeValue({ id, received })
    const result = 'text' in encoded ? encoded.text : ''
    await execution.put({ ...waiting, state: 'succeeded', result })
    return received
  }
  // Of several with one name the oldest is next; a signal is taken by one wait only.
  const signal = execution.signals.find((each) => each.name === name && !taken.has(each.id))
  if (signal !== undefined) {
    taken.add(signal.id)
    return keep(signal.id, { kind: 'received', payload: decodeValue(signal.payload) as T })
  }
  if (place.recorded === null) await execution.put(waiting)
  // A signal that comes later makes the run due, and it comes here again with it.
  await until(execution, place.branch, dueAt)
  return keep(null, { kind: 'timed_out' })
}
