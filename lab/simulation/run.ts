import { DAY, limits, MINUTE } from '../../src/ledger/core/limits.ts'
import type { TransactionalStore } from '../../src/ledger/store/port.ts'
import { assemble } from '../../src/ledger/stores/memory/assemble.ts'
import type { MemoryTx } from '../../src/ledger/stores/memory/index.ts'
import type { Simulation } from '../../test/support/simulation.ts'
import { createSimulation } from '../../test/support/simulation.ts'
import { storm } from './chaos.ts'
import { runClient } from './client.ts'
import { ROWS, UNIQUE } from './effect.ts'
import type { Host } from './host.ts'
import { startHost } from './host.ts'
import { resolveAll } from './operators.ts'
import { createProvider } from './provider.ts'
import type { ClientPlan, Focus } from './scenario.ts'
import { calm, drawClient, drawScenario } from './scenario.ts'
import type { BrokenRule, Trace } from './trace.ts'
import { createTrace } from './trace.ts'
import type { Witness } from './witness.ts'
import { createWitness } from './witness.ts'
import type { RunTally, World } from './world.ts'

export interface RunOptions {
  /** The store loses everything once: what is lost must be reported. */
  readonly reset?: boolean
  readonly focus?: Focus
}

export interface RunResult {
  readonly seed: number
  readonly failure: BrokenRule | null
  readonly hash: string
  readonly events: number
  readonly virtualMs: number
  readonly tally: RunTally
  tail(lines: number): readonly string[]
}

/** Longer than anything that a healthy world may take: settling is retried for minutes, probes back off. */
const HEALING_MS = 30 * MINUTE
const EVENTS_MOST = 200_000
const LAST_CALLS_MS = 2 * MINUTE
const LONGEST_MS = 400 * DAY

/** One run of one seed: a storm, then calm weather, and in the end everything is at rest and adds up. */
export async function simulateLedger(seed: number, options: RunOptions = {}): Promise<RunResult> {
  const simulation = createSimulation({ seed })
  const { random } = simulation
  const scenario = drawScenario(random, options)
  const trace = createTrace(simulation.now)
  const { commands } = scenario
  const things = new Map<string, unknown>()
  const provider = createProvider({ simulation, random, trace, things })
  const tally = createTally()
  const unknowns = (began: boolean) => {
    tally.unknowns += 1
    if (!began) tally.needlessUnknowns += 1
  }
  const witness = createWitness({ commands, trace, now: simulation.now, mayLoseRecords: scenario.reset, unknowns })
  let store = createStore(simulation, witness)
  const world: World = {
    simulation,
    random,
    scenario,
    trace,
    witness,
    provider,
    tally,
    store: () => store,
    weather: scenario.weather,
    stormy: true,
    things,
    unrecorded: new Set(),
  }
  if (scenario.reset) {
    simulation.timer(scenario.chaosMs / 2, () => {
      trace.note('the store loses everything')
      store = createStore(simulation, witness)
      // As PostgreSQL does, whose fences begin at the time of its making: they never come again, not even after a
      // reset.
      void skipFences(store)
      witness.reset()
      provider.reset()
    })
  }
  // While the run is directed, background work alone keeps time moving.
  const lasting = simulation.timer(2 * LONGEST_MS, () => {})
  void direct(world)
    .catch((error: unknown) =>
      trace.fail('theWorldIsSound', error instanceof Error ? String(error.stack) : String(error)),
    )
    .finally(() => lasting.cancel())
  const end = await simulation.run({ untilMs: LONGEST_MS, events: EVENTS_MOST, enough: () => trace.failure !== null })
  if (end !== 'idle' && end !== 'enough') trace.fail('comesToRest', `the run ended ${end}`)
  return {
    seed,
    failure: trace.failure,
    hash: trace.hash(),
    events: trace.events,
    virtualMs: simulation.now(),
    tally,
    tail: trace.tail,
  }
}

function createTally(): RunTally {
  return { effects: 0, crashes: 0, pauses: 0, unknowns: 0, needlessUnknowns: 0, lostReports: 0, answers: {} }
}

const SKIPPED_FENCES = 10_000

/** Skips fences: those before the reset stay unique. */
async function skipFences(store: TransactionalStore<MemoryTx>): Promise<void> {
  const nothing = { kind: 'reconcile', id: 'f'.repeat(32) } as const
  for (let n = 0; n < SKIPPED_FENCES; n++) await store.claims.apply(nothing, { timeoutMs: LONGEST_MS })
}

function createStore(simulation: Simulation, witness: Witness): TransactionalStore<MemoryTx> {
  const clock = { monotonicMs: simulation.now, wallMs: () => simulation.now(), setTimer: simulation.timer }
  return assemble({ clock }, witness.watch())
}

/** The course of a run. */
async function direct(world: World): Promise<void> {
  const { scenario, trace, random } = world
  // 1. The storm: clients ask while everything goes wrong.
  const hosts = Array.from({ length: scenario.processes }, (_, slot) => startHost(world, `p${slot}.1`))
  const up = () => pickUp(world, hosts)
  const replies = scenario.clients.map((plan) => runClient(world, plan, up))
  await storm(world, hosts)
  // 2. The faults end: hosts that are down start again, and every call gets an answer.
  trace.note('the weather clears')
  world.weather = calm
  world.stormy = false
  world.provider.heal()
  for (const [slot, host] of hosts.entries()) if (!host.open) hosts[slot] = startHost(world, `p${slot}.9`)
  while (hosts.some(({ process }) => process.paused)) await world.simulation.after(1_000)
  await answered(world, hosts, replies, scenario.clients)
  // 3. Everything that was claimed is settled, and asking again gives what is recorded.
  await askAgain(world, hosts, 'again')
  await stopAll(world, hosts)
  if (scenario.secondLife) await secondLife(world)
  await world.simulation.after(random.below(10))
  await rowsMatchRecords(world)
}

function pickUp({ random }: World, hosts: readonly Host[]): Host | null {
  const open = hosts.filter((host) => host.open)
  return open.length === 0 ? null : random.pick(open)
}

/** Every client has its final answer within a bounded time, and nothing is left in progress. */
async function answered(
  world: World,
  hosts: readonly Host[],
  replies: readonly Promise<unknown>[],
  plans: readonly ClientPlan[],
): Promise<void> {
  const { simulation, trace, witness } = world
  const waiting = new Set(plans.map(({ name }) => name))
  for (const [index, reply] of replies.entries()) void reply.then(() => waiting.delete(plans[index]?.name ?? ''))
  const deadline = simulation.now() + HEALING_MS
  const inProgress = () => [...witness.lives.values()].filter(({ last }) => last?.state === 'in_progress')
  // Unresolvable unknown outcomes are resolved by an operator after a while, repeatedly.
  for (let round = 0; waiting.size > 0 || inProgress().length > 0; round++) {
    await simulation.after(10_000)
    if (simulation.now() > deadline) {
      if (waiting.size > 0) trace.fail('everybodyIsAnswered', `no final answer for ${[...waiting].join(', ')}`)
      const names = inProgress().map(({ command }) => command.name)
      trace.fail('nothingStaysInProgress', names.join(', '))
      return
    }
    const host = hosts.find(({ open }) => open)
    if (round % 6 === 5 && host !== undefined) await resolveAll(world, host)
  }
}

/** Recorded outcomes are replayed; free keys run again. */
async function askAgain(world: World, hosts: readonly Host[], name: string): Promise<void> {
  const plans = world.scenario.commands.map((command, index): ClientPlan => {
    const plan = drawClient(world.random, `${name}${index}`, command, 1_000)
    return { ...plan, persistent: false, hangUpMs: null }
  })
  await answered(
    world,
    hosts,
    plans.map((plan) => runClient(world, plan, () => pickUp(world, hosts))),
    plans,
  )
}

async function stopAll({ trace, simulation }: World, hosts: readonly Host[]): Promise<void> {
  for (const host of hosts) host.open = false
  await Promise.all(hosts.map(({ ledger }) => ledger.stop()))
  trace.note('all ledgers stopped')
  // Calls that still wait for the store end soon: every call of it has a deadline.
  await simulation.after(LAST_CALLS_MS)
  for (const host of hosts) noCallHangs(trace, host)
}

/** Every call was answered, except for an effect that ignores its signal and continues. */
function noCallHangs(trace: Trace, { name, calls }: Host): void {
  for (const { life, name: call } of calls) {
    const runs = [...life.running].some(({ host, ended }) => host === name && ended === null)
    if (!runs) trace.fail('noCallHangs', `${call} of ${life.command.name} at ${name}`)
  }
}

/** All clients pause until every record is past its end; then all keys are new again. */
async function secondLife(world: World): Promise<void> {
  const { simulation, scenario, trace } = world
  const awayMs = Math.max(...scenario.operations.map((plan) => plan.retainMs + plan.refuseMs + plan.unknownMs))
  await simulation.after(awayMs + limits.vacantMs)
  trace.note('a second life')
  const hosts = [startHost(world, 'p8.1'), startHost(world, 'p9.1')]
  await askAgain(world, hosts, 'late')
  await stopAll(world, hosts)
}

/** Rows and records commit together: there are exactly as many of the one as of the other. */
async function rowsMatchRecords({ store, witness, trace, scenario }: World): Promise<void> {
  if (scenario.reset) return
  const call = { timeoutMs: limits.storeCallMs, lockMs: limits.storeCallMs, refuseTwinOf: null }
  const all = await store().transactions.run(async ({ tx }) => (tx.get(ROWS) as string[] | undefined) ?? [], call)
  const rows = all.filter((row) => !row.startsWith(UNIQUE)).toSorted()
  const recorded = [...witness.lives.values()]
    .filter(({ command }) => command.operation.kind === 'transaction')
    .flatMap(({ command, outcomes }) =>
      outcomes.filter(({ state }) => state === 'succeeded').map(({ fence }) => `${command.name} ${fence}`),
    )
    .toSorted()
  if (rows.join() !== recorded.join()) {
    trace.fail('rowsMatchRecords', `rows ${rows.join('; ')}, records ${recorded.join('; ')}`)
  }
  const owners = new Set(all.filter((row) => row.startsWith(UNIQUE)))
  if (owners.size > 1) trace.fail('uniqueValuesHaveOneOwner', [...owners].join('; '))
}
