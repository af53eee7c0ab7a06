import { final, notDone, released } from '../../src/ledger/core/verdict.ts'
import type { EffectContext, TransactionContext } from '../../src/ledger/effect-context.ts'
import type { MemoryTx } from '../../src/ledger/stores/memory/index.ts'
import type { Host } from './host.ts'
import type { Life, RunningEffect } from './life.ts'
import type { OperationPlan } from './scenario.ts'
import type { World } from './world.ts'
import { nap } from './world.ts'

/** One call of one client, with what its effect may need. */
export interface Call {
  readonly name: string
  readonly life: Life
  readonly host: Host
  readonly beganMs: number
  /** When the first call began that this one may share its answer with: what runs is joined, also a mere question. */
  readonly sinceMs: number
  /** Shares an attempt that runs when it comes; a bare claim does not. */
  readonly joins: boolean
}

/** Rows that transactions wrote, one per effect that was committed. */
export const ROWS = 'rows'
/** Rows that record the owner of the one business value of this world start so. */
export const UNIQUE = 'unique'

/** What the user's function does, as a user would write it: reads its key, calls the provider, answers or throws. */
export async function leasedEffect(world: World, call: Call, attempt: EffectContext): Promise<unknown> {
  const effect = begin(world, call, attempt)
  try {
    const value = await perform(world, call, effect)
    end(world, effect, 'returned', false)
    return value
  } catch (thrown) {
    end(world, effect, 'threw', isRetryable(call.life, thrown))
    throw thrown
  }
}

function begin(world: World, { life, host, name, beganMs, joins }: Call, attempt: EffectContext): RunningEffect {
  const { process } = host
  const startedMs = world.simulation.now()
  const effect: RunningEffect = { attempt, process, host: host.name, call: name, startedMs, joins, ended: null }
  world.tally.effects += 1
  world.witness.begin(life, effect, beganMs)
  return effect
}

function end(world: World, effect: RunningEffect, how: 'returned' | 'threw', retryable: boolean): void {
  effect.ended = { how, retryable, atMs: world.simulation.now(), inTime: !effect.attempt.signal.aborted }
  world.trace.note(`${effect.host} ${effect.call} effect under fence ${effect.attempt.fence} ${how}`)
}

/** A twin that waited for this shares it, and does not start again. */
function isRetryable(life: Life, thrown: unknown): boolean {
  const { kind } = life.command.operation
  if (kind === 'transaction') return false
  if (typeof thrown === 'object' && thrown !== null && 'verdict' in thrown) return thrown.verdict === 'not_done'
  return kind === 'repeatable' || (thrown as { code?: unknown }).code === 'ECONNREFUSED'
}

async function perform(world: World, { life, host }: Call, effect: RunningEffect): Promise<unknown> {
  const { random, provider, witness } = world
  const { attempt } = effect
  const { operation } = life.command
  const act = () => witness.act(life, effect)
  act()
  await work(world, host, attempt, operation)
  if (random.chance(0.05)) throw notDone(new Error('not yet'))
  if (random.chance(0.03)) throw released(new Error('never arrived'))
  if (operation.kind === 'attached' || random.chance(0.1)) {
    await attempt.attach({ type: 'draft', id: `draft ${attempt.fence}` })
  }
  attempt.signal.throwIfAborted()
  const { effectKey, fence, attemptNumber } = attempt
  act()
  witness.goesOut(life, effect)
  const incarnation = witness.grantOf(fence)?.incarnation ?? fence
  const { process, name } = host
  const value = await provider.call({
    life,
    process,
    host: name,
    effectKey,
    incarnation,
    fence,
    attempt: attemptNumber,
  })
  await work(world, host, attempt, operation)
  if (world.stormy && random.chance(0.05)) throw new Error('broke after the effect')
  return value
}

/** Most effects are quick, some take as long as their lease, and a few as long as they may, or longer. */
async function work({ random }: World, { process }: Host, attempt: EffectContext, plan: OperationPlan): Promise<void> {
  const { leaseMs, maxRunMs } = plan
  const share = random.next()
  const longMs = Math.min(maxRunMs, 4 * leaseMs)
  const ms = share < 0.75 ? random.below(30) : random.below(share < 0.93 ? leaseMs : longMs + leaseMs)
  if (random.chance(0.5)) return nap(process.runtime, ms)
  const { signal } = attempt
  const stopped = new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
  await Promise.race([nap(process.runtime, ms), stopped])
  signal.throwIfAborted()
}

/** The same in a transaction: one row per effect that is committed, and none of any other. */
export async function transactionEffect(
  world: World,
  call: Call,
  work: TransactionContext<MemoryTx>,
  depth = 0,
): Promise<unknown> {
  const effect = begin(world, call, work)
  try {
    const value = await write(world, call, work, depth)
    end(world, effect, 'returned', false)
    return value
  } catch (thrown) {
    end(world, effect, 'threw', false)
    throw thrown
  }
}

async function write(world: World, call: Call, work: TransactionContext<MemoryTx>, depth: number): Promise<unknown> {
  const { random, things, provider } = world
  const { tx, unique, effectKey, fence } = work
  const { name } = call.life.command
  const add = (row: string) => tx.set(ROWS, [...((tx.get(ROWS) as readonly string[] | undefined) ?? []), row])
  add(`${name} ${fence}`)
  if (random.chance(0.3)) await nap(call.host.process.runtime, random.below(300))
  if (random.chance(0.4)) {
    const answer = await unique('ref', 'one')
    if (answer.kind === 'taken') throw final(new Error('taken'))
    add(`${UNIQUE} ${name}`)
  }
  if (depth === 0 && random.chance(0.15)) await nest(world, call, depth)
  if (world.stormy && random.chance(0.1)) throw new Error('rolled back')
  if (random.chance(0.1)) throw final(Object.assign(new Error('refused'), { data: { n: provider.number() } }))
  const value = { effectKey, fence, n: provider.number() }
  things.set(String(value.n), value)
  return value
}

/** Another command inside the same transaction: both are committed, or none. */
async function nest(world: World, call: Call, depth: number): Promise<void> {
  const { random, scenario, witness, trace } = world
  const { host } = call
  const command = random.pick(scenario.commands)
  const operation = host.transactions.get(command.operation.name)
  if (operation === undefined || command === call.life.command) return
  trace.note(`${host.name} ${call.name} nests ${command.name}`)
  const inner: Call = { ...call, name: `${call.name}.in`, life: witness.lifeOf(command), joins: false }
  try {
    await operation.execute(command.parts, 0, (work) => transactionEffect(world, inner, work, depth + 1))
  } catch (error) {
    // Half of them continue without it, and then it must not be there.
    if (random.chance(0.5)) throw error
  }
}
