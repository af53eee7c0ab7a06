import { isOnceError } from 'onceonly'
import type { Engine, Resolution } from 'onceonly/run'
import { limits, MINUTE, SECOND } from '../../../../src/ledger/core/limits.ts'
import type { RunState, StepRow } from './judge.ts'
import { judgeFailures, partOf, stateOf } from './judge.ts'
import type { World } from './parts.ts'
import { everyPart } from './program.ts'
import { line } from './queue.ts'

const MOST_RESUMES = 2
const ROUND_MS = 4 * MINUTE
/** How often a run is cancelled, and forked, in a round of the operator. */
const RARELY = { cancel: 0.06, fork: 0.08 }
const OFTEN = { cancel: 0.1, fork: 0.3 }

/** Starts every run, and retries until it is started. */
export async function startAll({ simulation, programs, join }: World): Promise<void> {
  for (const runId of programs.keys()) {
    // Runs of a queue come in a crowd.
    await simulation.after(simulation.random.below(runId.startsWith('queued') ? 20 * SECOND : 5 * MINUTE))
    let started = false
    while (!started) {
      const starting = join(simulation.process(), false).then(({ start }) => start(runId))
      started = await starting.then(
        () => true,
        () => false,
      )
      // Another run may have its dedupKey for a while.
      if (!started) await simulation.after(simulation.random.below(MINUTE))
    }
  }
}

/**
 * The operator of the runs: resolves unknown steps truthfully, sends the signals that runs wait for, and resumes failed
 * runs, at times much later; cancels and forks some. The operator's process may die in the middle.
 */
export function attend(world: World): { isDone(): boolean; readonly cancelled: ReadonlySet<string> } {
  const { simulation, database, outside, programs, programOf, isCalm, join, breaks } = world
  const { random } = simulation
  const resumes = new Map<string, number>()
  const signalled = new Set<string>()
  const often = world.busyOperator ? OFTEN : RARELY
  const cancelled = new Set<string>()
  const forked = new Set<string>()

  /** What never gets through was not done, and trying again would not help. */
  function resolutionOf(runId: string, name: string): Resolution {
    if (outside.performed(name) > 0) return { kind: 'succeeded', result: name }
    const isCursed = everyPart(programOf(runId) ?? []).some(
      (part) => part.kind === 'send' && part.cursed && name === `${runId} ${part.id}`,
    )
    return isCursed ? { kind: 'failed', error: new Error('never gets through') } : { kind: 'not_done' }
  }

  let done = false
  function isDone(): boolean {
    const { runs } = stateOf(database)
    const isOver = ({ id, state }: (typeof runs)[number]) =>
      state === 'succeeded' || state === 'cancelled' || (state === 'failed' && (resumes.get(id) ?? 0) >= MOST_RESUMES)
    const started = runs.filter(({ id }) => programs.has(id))
    return started.length === programs.size && runs.every(isOver)
  }

  async function answer(engine: Engine): Promise<void> {
    const { runs, steps } = stateOf(database)
    judgeFailures(runs, breaks)
    for (const step of steps.filter(({ state }) => state === 'unknown')) {
      await engine.resolve(step.run, step.key, resolutionOf(step.run, partOf(step))).catch(unlessKnown)
    }
    const waits = runs.flatMap(({ id: runId }) =>
      everyPart(programOf(runId) ?? []).flatMap(({ kind, id: name }) => (kind === 'wait' ? [{ runId, name }] : [])),
    )
    for (const { runId, name } of waits) {
      const id = `${runId} ${name}`
      if (signalled.has(id) || random.chance(0.5)) continue
      // A run that has ended may be resumed, and wait for it then.
      const taken = await engine.signal(runId, name, 'go', { id }).catch(unlessKnown)
      if (taken !== undefined) signalled.add(id)
    }
    // Its workers died one after the other, of causes of their own.
    for (const { id, takeovers } of runs)
      if (takeovers >= limits.runTakeovers) await engine.resume(id).catch(unlessKnown)
    for (const { id, state } of runs) {
      const before = resumes.get(id) ?? 0
      if (state !== 'failed' || before >= MOST_RESUMES || (!isCalm() && random.chance(0.8))) continue
      await engine.resume(id).catch(unlessKnown)
      resumes.set(id, before + 1)
    }
    if (isCalm() || random.chance(0.5)) await engine.queues.resume(line.name).catch(unlessKnown)
    else if (random.chance(0.2)) await engine.queues.pause(line.name).catch(unlessKnown)
    if (!isCalm()) await interfere(engine, runs, steps)
  }

  /** Cancels runs, takes some of them up again, and forks others: once each, from where they happen to be. */
  async function interfere(engine: Engine, runs: readonly RunState[], steps: readonly StepRow[]): Promise<void> {
    for (const { id, state } of runs.filter(({ id: each }) => programOf(each) !== null)) {
      if (!cancelled.has(id) && random.chance(often.cancel)) {
        cancelled.add(id)
        await engine.cancel(id).catch(unlessKnown)
      } else if (state === 'cancelled' && random.chance(0.3)) {
        await engine.resume(id).catch(unlessKnown)
      }
      const own = steps.filter(({ run, branch }) => run === id && !branch.startsWith('$cancel'))
      if (own.length > 0 && !id.includes('.') && !forked.has(id) && random.chance(often.fork)) {
        forked.add(id)
        await engine.fork(id, { runId: `${id}.fork`, from: random.pick(own).key }).catch(unlessKnown)
      }
    }
  }

  async function rounds(): Promise<void> {
    for (;;) {
      await simulation.after(random.below(ROUND_MS))
      const process = simulation.process()
      const answering = join(process, false)
        .then(({ engine }) => answer(engine))
        .catch(() => undefined)
      const dies = !isCalm() && random.chance(0.3)
      await Promise.race([answering, simulation.after(dies ? random.below(2 * SECOND) : MINUTE)])
      process.crash()
      done = isDone()
    }
  }

  void rounds()
  return { isDone: () => done, cancelled }
}

/** A final refusal means that there is nothing left to do. */
function unlessKnown(error: unknown): undefined {
  if (!isOnceError(error) || error.retryable) throw error
  return undefined
}
