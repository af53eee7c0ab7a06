import { limits } from '../../src/ledger/core/limits.ts'
import type { Host } from './host.ts'
import { startHost } from './host.ts'
import { actNowAndThen } from './operators.ts'
import type { World } from './world.ts'

/** Everything that goes wrong by itself, apart from the network: crashes, pauses, partitions, deploys, people. */
export async function storm(world: World, hosts: Host[]): Promise<void> {
  const { scenario, simulation, random } = world
  const { chaosMs } = scenario
  const during = (count: number, act: (slot: number) => void) => {
    for (let left = count; left > 0; left--) {
      const slot = random.below(hosts.length)
      simulation.timer(random.below(chaosMs), () => act(slot))
    }
  }
  const longMs = Math.round(1.5 * (scenario.leaseMs + limits.leaseGraceMs))
  let generation = 1
  const replace = (slot: number) => {
    generation += 1
    hosts[slot] = startHost(world, `p${slot}.${generation}`)
  }
  during(scenario.crashes, (slot) => hosts[slot]?.crash('by chance'))
  during(scenario.pauses, (slot) => pause(world, hosts[slot], random.below(random.pick([longMs, LONGEST_PAUSE_MS]))))
  during(scenario.partitions, (slot) => cut(world, hosts[slot], random.below(longMs)))
  during(scenario.restarts, (slot) => deploy(world, hosts, slot, replace))
  during(scenario.acts, (slot) => {
    const host = hosts[slot]
    if (host?.open !== true) return
    actNowAndThen(world, host, random.pick(scenario.commands)).catch((error: unknown) =>
      world.trace.fail('theWorldIsSound', String(error)),
    )
  })
  during(scenario.sweeps, (slot) => sweep(world, hosts[slot]))
  if (scenario.nightMs > 0) {
    during(1, () => {
      for (const host of hosts) pause(world, host, scenario.nightMs)
    })
  }
  await watchOver(world, hosts, replace)
}

/** Longer than the lease of a probe. */
const LONGEST_PAUSE_MS = 2 * limits.probeLeaseMs

function sweep({ trace }: World, host: Host | undefined): void {
  if (host?.open !== true) return
  host.ledger.upkeep.sweep().then(
    (removed) => trace.note(`${host.name} swept ${removed}`),
    () => trace.note(`${host.name} could not sweep`),
  )
}

function pause({ trace, tally }: World, host: Host | undefined, ms: number): void {
  if (host === undefined || host.process.crashed) return
  trace.note(`${host.name} stands still for ${ms} ms`)
  tally.pauses += 1
  host.process.pause(ms)
}

function cut({ trace }: World, host: Host | undefined, ms: number): void {
  if (host === undefined || host.process.crashed) return
  trace.note(`${host.name} is cut off for ${ms} ms`)
  host.link.cut(ms)
}

/** A new version: the old process accepts nothing more, ends what runs, and goes. */
function deploy({ trace }: World, hosts: readonly Host[], slot: number, replace: (slot: number) => void): void {
  const host = hosts[slot]
  if (host === undefined || !host.open) return
  trace.note(`${host.name} is asked to stop`)
  host.open = false
  void host.ledger.stop().then(() => trace.note(`${host.name} has stopped`))
  replace(slot)
}

/** Crashed processes come back after a while, as new ones. */
async function watchOver({ simulation, scenario, random }: World, hosts: Host[], replace: (slot: number) => void) {
  const until = simulation.now() + scenario.chaosMs
  while (simulation.now() < until) {
    await simulation.after(Math.min(random.below(scenario.leaseMs), until - simulation.now()) + 1)
    for (const [slot, host] of hosts.entries()) if (host.process.crashed) replace(slot)
  }
}
