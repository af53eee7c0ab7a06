import { isOnceError } from '../../src/ledger/core/errors.ts'
import { effectKeyOf } from '../../src/ledger/core/identity.ts'
import type { LedgerRecord } from '../../src/ledger/core/record.ts'
import { failed, succeeded } from '../../src/ledger/granted.ts'
import type { OperatorOptions } from '../../src/ledger/operator.ts'
import { rerun } from '../../src/ledger/operator.ts'
import type { Host } from './host.ts'
import type { CommandPlan } from './scenario.ts'
import type { World } from './world.ts'
import { nap } from './world.ts'

/** An operator reads one record and acts on it, mostly under the fence that was read. */
export async function actNowAndThen(world: World, host: Host, command: CommandPlan): Promise<void> {
  const { random, trace } = world
  const identity = { ...command.parts, operation: command.operation.name }
  try {
    const view = await host.ledger.get(identity)
    if (view === null) return
    const { record } = view
    const options: OperatorOptions = random.chance(0.8) ? { by: 'ops', ifFence: record.fence } : { by: 'ops' }
    trace.note(`person at ${host.name} looks at ${command.name}: ${record.state} under fence ${record.fence}`)
    // Operators think before they act, and meanwhile the world continues.
    await nap(host.process.runtime, random.below(random.pick([50, 10_000])))
    if (record.state === 'unknown') await resolve(world, host, command, record, options)
    else if (record.state === 'in_progress') {
      if (random.chance(0.5)) await host.ledger.release(identity, options)
    } else if (random.chance(0.3)) await host.ledger.forget(identity, options)
  } catch (error) {
    if (!isOnceError(error)) throw error
    trace.note(`person at ${host.name} gets ${error.code}`)
  }
}

/** Says what the provider knows: what happened, happened. */
async function resolve(
  world: World,
  { ledger }: Host,
  command: CommandPlan,
  record: LedgerRecord,
  options: OperatorOptions,
): Promise<void> {
  const { random, provider } = world
  const identity = { ...command.parts, operation: command.operation.name }
  const truth = provider.truth(effectKeyOf(record.id, record.incarnation))
  if (truth !== null) return ledger.resolve(identity, succeeded(truth.value), options)
  if (random.chance(0.5)) return ledger.resolve(identity, rerun, options)
  const error = Object.assign(new Error('given up'), { data: { n: provider.number() } })
  return ledger.resolve(identity, failed(error), options)
}

/** After the storm: every unknown outcome is resolved, so that no call waits forever. */
export async function resolveAll(world: World, host: Host): Promise<void> {
  for (const command of world.scenario.commands) {
    const identity = { ...command.parts, operation: command.operation.name }
    try {
      const view = await host.ledger.get(identity)
      if (view?.record.state !== 'unknown') continue
      await resolve(world, host, command, view.record, { by: 'ops', ifFence: view.record.fence })
    } catch (error) {
      // A probe, or the attempt itself, may have been faster.
      if (!isOnceError(error)) throw error
    }
  }
}
