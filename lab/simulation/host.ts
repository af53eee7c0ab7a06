import type { Identity } from '../../src/ledger/core/identity.ts'
import { recordIdOf } from '../../src/ledger/core/identity.ts'
import { limits } from '../../src/ledger/core/limits.ts'
import type { LeasedDefinition, ProbedAttempt, TransactionDefinition } from '../../src/ledger/definition.ts'
import type { LedgerEvent } from '../../src/ledger/events.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { createLedger } from '../../src/ledger/ledger.ts'
import type { LeasedOperation, TransactionalOperation } from '../../src/ledger/operation.ts'
import type { MemoryTx } from '../../src/ledger/stores/memory/index.ts'
import type { SimulatedProcess } from '../../test/support/simulation.ts'
import type { Life } from './life.ts'
import type { Link } from './network.ts'
import { createLink } from './network.ts'
import type { OperationPlan } from './scenario.ts'
import type { World } from './world.ts'

/** One process with its ledger. After a crash it is gone for good; another one takes its place. */
export interface Host {
  readonly name: string
  readonly process: SimulatedProcess
  readonly link: Link
  readonly ledger: Ledger<MemoryTx>
  readonly operations: ReadonlyMap<string, LeasedOperation<number>>
  readonly transactions: ReadonlyMap<string, TransactionalOperation<number, MemoryTx>>
  /** Calls that were not answered yet. */
  readonly calls: Set<OpenCall>
  /** Accepts calls. */
  open: boolean
  crash(why: string): void
}

interface OpenCall {
  readonly name: string
  readonly life: Life
  readonly sinceMs: number
}

/** Within what the grace forgives: a lease of a minute and a clock that is slow by this much end before the store's. */
const DRIFT = 0.05

export function startHost(world: World, name: string): Host {
  const { simulation, random, witness, trace } = world
  const process = simulation.process({ skewMs: random.below(10_000_000), rate: 1 - DRIFT + 2 * DRIFT * random.next() })
  const crash = (why: string) => {
    if (process.crashed) return
    trace.note(`${name} crashes ${why}`)
    world.tally.crashes += 1
    process.crash()
    host.open = false
  }
  const link = createLink({
    name,
    simulation,
    random,
    process,
    crash,
    store: world.store,
    weather: () => world.weather,
    longMs: Math.round(1.5 * (world.scenario.leaseMs + limits.leaseGraceMs)),
    note: trace.note,
    heard: witness.heard,
    inSession: witness.inSession,
    beginTransaction: witness.beginTransaction,
    transactionFailed: witness.transactionFailed,
  })
  const ledger = createLedger({
    store: link.store,
    runtime: process.runtime,
    on: (event) => listen(world, name, event),
  })
  const operations = new Map<string, LeasedOperation<number>>()
  const transactions = new Map<string, TransactionalOperation<number, MemoryTx>>()
  const host: Host = { name, process, link, ledger, operations, transactions, calls: new Set(), open: true, crash }
  for (const plan of world.scenario.operations) {
    if (plan.kind === 'transaction') {
      transactions.set(plan.name, ledger.operation<number>(transactionDefinition(world, plan)))
    } else operations.set(plan.name, ledger.operation<number>(leasedDefinition(world, host, plan)))
  }
  trace.note(`${name} starts`)
  return host
}

function listen(world: World, name: string, event: LedgerEvent): void {
  if (!('identity' in event)) {
    if (event.kind === 'background_failed') world.trace.note(`${name} background ${event.what} failed`)
    return
  }
  const life = world.witness.lives.get(recordIdOf(event.identity))
  if (life === undefined) return
  world.trace.note(`${name} event ${event.kind} of ${life.command.name}`)
  if (event.kind === 'settle_failed') world.unrecorded.add(`${name} ${life.command.name}`)
  if (event.kind === 'record_lost') world.tally.lostReports += 1
}

function common(world: World, { name, retainMs, refuseMs, whileRunning, keep }: OperationPlan) {
  const keeping =
    keep === 'pointer'
      ? {
          keep,
          pointer: (value: { n: number }) => ({ type: 'thing', id: String(value.n) }),
          rebuild: ({ id }: { id: string }) => world.things.get(id),
        }
      : { keep }
  const expiry = refuseMs === 0 ? {} : ({ afterExpiry: 'refuse', refuseMs } as const)
  return { name, retainMs, whileRunning, ...keeping, ...expiry }
}

function transactionDefinition(world: World, plan: OperationPlan): TransactionDefinition<number> {
  return { ...common(world, plan), effect: 'transaction' }
}

function leasedDefinition(world: World, host: Host, plan: OperationPlan): LeasedDefinition<number> {
  const { kind, leaseMs, maxRunMs, unknownMs } = plan
  const leased = { ...common(world, plan), leaseMs, maxRunMs, unknownMs }
  const probe = (identity: Identity, attempt: ProbedAttempt) => {
    const life = world.witness.lives.get(recordIdOf(identity))
    if (life === undefined) throw new Error('a probe without a life')
    const { effectKey, attempt: number } = attempt
    return world.provider.probe({ life, process: host.process, host: host.name, effectKey, attempt: number })
  }
  switch (kind) {
    case 'hold':
    case 'transaction':
      return { ...leased, effect: 'external' }
    case 'not_found':
    case 'prevented':
      return { ...leased, effect: 'external', probe }
    case 'rerun':
      return { ...leased, effect: 'external', onAbandoned: 'rerun' }
    case 'attached':
      return { ...leased, effect: 'external', onAbandoned: 'hold_attached', retainFrom: 'claimed' }
    case 'repeatable':
      return { ...leased, effect: 'repeatable' }
  }
}
