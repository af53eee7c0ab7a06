import { DAY, defaults, limits, SECOND } from '../../src/ledger/core/limits.ts'
import type { WhileRunning } from '../../src/ledger/definition.ts'
import type { Random } from '../../src/testing/random.ts'

/**
 * How the effect of an operation behaves, and what its provider can do:
 * `hold` there is no probe; `not_found` the probe may say "not found"; `prevented` the probe stops late attempts;
 * `rerun` external, but the provider honours effect keys; `attached` held once it named what it makes, in a window that
 * counts from its claim; `repeatable` and `transaction` as their names say.
 */
export type Kind = 'hold' | 'not_found' | 'prevented' | 'rerun' | 'attached' | 'repeatable' | 'transaction'

export interface OperationPlan {
  readonly name: string
  readonly kind: Kind
  readonly leaseMs: number
  readonly maxRunMs: number
  readonly retainMs: number
  readonly refuseMs: number
  readonly unknownMs: number
  readonly whileRunning: WhileRunning
  readonly keep: 'response' | 'pointer' | 'outcome'
}

/** One intended effect, which many clients may ask for. */
export interface CommandPlan {
  readonly name: string
  readonly operation: OperationPlan
  readonly parts: { readonly tenant: string; readonly caller: string; readonly key: string }
}

export interface ClientPlan {
  readonly name: string
  readonly command: CommandPlan
  /** 0 is the command's own payload; another one is a key that was used for something else. */
  readonly payload: number
  readonly startMs: number
  /** How long it waits for an answer before it retries, without knowing the outcome of the first call. */
  readonly patienceMs: number
  /** Hangs up this long after a call began; null never does. */
  readonly hangUpMs: number | null
  /** Retries an unknown outcome until it is resolved. */
  readonly persistent: boolean
}

/** The chances of mishaps, per call over the network. */
export interface Weather {
  readonly refused: number
  readonly lostRequest: number
  readonly lostAnswer: number
  /** The request arrives a second time, late. */
  readonly twice: number
  readonly slow: number
  /** Under way for longer than a lease. */
  readonly stuck: number
  /** Of a batch only some rows are decided. */
  readonly partial: number
  readonly crash: number
  readonly pause: number
}

export interface Scenario {
  readonly processes: number
  readonly leaseMs: number
  readonly chaosMs: number
  readonly operations: readonly OperationPlan[]
  readonly commands: readonly CommandPlan[]
  readonly clients: readonly ClientPlan[]
  readonly weather: Weather
  readonly crashes: number
  readonly pauses: number
  readonly partitions: number
  readonly restarts: number
  readonly acts: number
  /** Manual sweeps, beside those of the background. */
  readonly sweeps: number
  /** Every process stands still for this long, as on a machine that sleeps; 0 is none. */
  readonly nightMs: number
  /** After the end all clients pause until every record is gone, and then all is asked again. */
  readonly secondLife: boolean
  /** The store loses everything in the middle of it. */
  readonly reset: boolean
}

export const calm: Weather = {
  refused: 0,
  lostRequest: 0,
  lostAnswer: 0,
  twice: 0,
  slow: 0,
  stuck: 0,
  partial: 0,
  crash: 0,
  pause: 0,
}

const kinds: readonly Kind[] = ['hold', 'not_found', 'prevented', 'rerun', 'attached', 'repeatable', 'transaction']
/** A lapse takes a lease and the grace, so a run must be some of these long to see what comes after it. */
const LAPSES_PER_RUN = 5

/** Leaves less to chance, for a run that looks for something in particular. */
export interface Focus {
  readonly kinds?: readonly Kind[]
  readonly leaseMs?: number
  readonly weather?: Partial<Weather>
  readonly pauses?: number
  readonly partitions?: number
  readonly acts?: number
  /** How many of the runs have a night. */
  readonly nightShare?: number
}

export function drawScenario(
  random: Random,
  { reset = false, focus = {} }: { readonly reset?: boolean; readonly focus?: Focus } = {},
): Scenario {
  const leaseMs = focus.leaseMs ?? random.pick([2, 5, 10, 30]) * SECOND
  const chaosMs = LAPSES_PER_RUN * (leaseMs + limits.leaseGraceMs)
  const operations = Array.from({ length: 1 + random.below(3) }, (_, index) =>
    drawOperation(random, random.pick(focus.kinds ?? kinds), index, leaseMs, chaosMs),
  )
  const commands = Array.from({ length: 3 + random.below(3) }, (_, index): CommandPlan => {
    const operation = random.pick(operations)
    const parts = { tenant: 'acme', caller: random.pick(['ann', 'bob']), key: `k${index}` }
    return { name: `${operation.name}/${parts.caller}/${parts.key}`, operation, parts }
  })
  const clients = Array.from({ length: 14 + random.below(14) }, (_, index) =>
    drawClient(random, `c${index}`, random.pick(commands), chaosMs),
  )
  return {
    processes: 2 + random.below(2),
    leaseMs,
    chaosMs,
    operations,
    commands,
    clients,
    weather: { ...drawWeather(random), ...focus.weather },
    crashes: random.below(3),
    pauses: focus.pauses ?? random.below(3),
    partitions: focus.partitions ?? random.below(2),
    restarts: random.below(2),
    acts: focus.acts ?? random.below(5),
    sweeps: random.below(4),
    nightMs: random.chance(focus.nightShare ?? 0.15) ? random.pick([2, 10]) * leaseMs : 0,
    secondLife: random.chance(0.2),
    reset,
  }
}

function drawOperation(random: Random, kind: Kind, index: number, leaseMs: number, chaosMs: number): OperationPlan {
  const own = random.pick([leaseMs, leaseMs, 2 * leaseMs])
  return {
    name: `${kind}${index}`,
    kind,
    leaseMs: own,
    maxRunMs: random.pick([own, 3 * own, defaults.maxRunMs]),
    retainMs: Math.round(random.pick([chaosMs / 4, chaosMs, DAY, DAY])),
    refuseMs: random.chance(0.25) ? Math.round(chaosMs / 4) : 0,
    unknownMs: Math.round(random.pick([chaosMs / 2, 2 * DAY])),
    whileRunning: random.pick([{ waitMs: 0 }, { waitMs: 2 * SECOND }, { waitMs: 10 * SECOND }, 'conflict', 'accept']),
    // A pointer is what holds an attached attempt, so it is not used for the result as well.
    keep: random.pick(['response', 'response', kind === 'attached' ? 'response' : 'pointer', 'outcome']),
  }
}

export function drawClient(random: Random, name: string, command: CommandPlan, withinMs: number): ClientPlan {
  return {
    name,
    command,
    payload: random.chance(0.1) ? 1 : 0,
    startMs: random.below(withinMs),
    patienceMs: random.pick([3, 15, 60]) * SECOND,
    hangUpMs: random.chance(0.15) ? random.pick([5, 50, 500, 5_000]) : null,
    persistent: random.chance(0.5),
  }
}

/**
 * Every run sees only some of the faults, and these more often: so rare coincidences of a few are not always drowned in
 * the noise of all the others. Some runs see almost none.
 */
function drawWeather(random: Random): Weather {
  const strength = random.pick([0, 0.5, 1, 1.5])
  const chance = (most: number) => (random.chance(0.5) ? strength * most * random.next() : 0)
  return {
    refused: chance(0.06),
    lostRequest: chance(0.08),
    lostAnswer: chance(0.12),
    twice: chance(0.15),
    slow: chance(0.2),
    stuck: chance(0.08),
    partial: chance(0.2),
    crash: chance(0.012),
    pause: chance(0.015),
  }
}
