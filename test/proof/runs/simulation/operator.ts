import { isOnceError } from 'onceonly'
import type { Engine, Resolution } from 'onceonly/run'
import { limits, MINUTE, SECOND } from '../../../../src/ledger/core/limits.ts'
import { judgeFailures, partOf, stateOf } from './judge.ts'
import type { World } from './parts.ts'
import { everyPart } from './program.ts'

const MOST_RESUMES = 2
const ROUND_MS = 4 * MINUTE

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
    }
  }
}

/**
 * The operator of the runs: resolves unknown steps truthfully, sends the signals that runs wait for, and resumes failed
 * runs, at times much later. The operator's process may die in the middle.
 */
export function attend(world: World): { isDone(): boolean } {
  const { simulation, database, outside, programs, isCalm, join, breaks } = world
  const { random } = simulation
  const resumes = new Map<string, number>()
  const signalled = new Set<string>()
  const signals = [...programs].flatMap(([runId, parts]) =>
    everyPart(parts).flatMap(({ kind, id }) => (kind === 'wait' ? [{ runId, name: id }] : [])),
  )

  const cursed = new Set(
    [...programs].flatMap(([runId, parts]) =>
      everyPart(parts).flatMap((part) => (part.kind === 'send' && part.cursed ? [`${runId} ${part.id}`] : [])),
    ),
  )

  /** What never gets through was not done, and trying again would not help. */
  function resolutionOf(part: string): Resolution {
    if (outside.performed(part) > 0) return { kind: 'succeeded', result: part }
    return cursed.has(part) ? { kind: 'failed', error: new Error('never gets through') } : { kind: 'not_done' }
  }

  let done = false
  function isDone(): boolean {
    const { runs } = stateOf(database)
    const isOver = ({ id, state }: (typeof runs)[number]) =>
      state === 'succeeded' || (state === 'failed' && (resumes.get(id) ?? 0) >= MOST_RESUMES)
    // Children are there as well; those of branches that lost a race are cancelled.
    const own = runs.filter(({ id }) => programs.has(id))
    const children = runs.filter(({ id }) => !programs.has(id))
    const isChildOver = (child: (typeof runs)[number]) => isOver(child) || child.state === 'cancelled'
    return own.length === programs.size && own.every(isOver) && children.every(isChildOver)
  }

  async function answer(engine: Engine): Promise<void> {
    const { runs, steps } = stateOf(database)
    judgeFailures(runs, breaks)
    for (const step of steps.filter(({ state }) => state === 'unknown')) {
      await engine.resolve(step.run, step.key, resolutionOf(partOf(step))).catch(unlessKnown)
    }
    for (const { runId, name } of signals) {
      const id = `${runId} ${name}`
      if (signalled.has(id) || random.chance(0.5) || !runs.some((run) => run.id === runId)) continue
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
  return { isDone: () => done }
}

/** A final refusal means that there is nothing left to do. */
function unlessKnown(error: unknown): undefined {
  if (!isOnceError(error) || error.retryable) throw error
  return undefined
}
