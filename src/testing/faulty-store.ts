import { OnceError } from '../ledger/core/errors.ts'
import type { Request } from '../ledger/core/request.ts'
import type { Claims, Session, Store, Transactions } from '../ledger/store/port.ts'
import type { Awaitable } from '../runtime/runtime.ts'
import { createRandom } from './random.ts'

/** What goes wrong with one call. */
export type StoreFault =
  | 'none'
  /** It fails before anything was sent: certainly not applied. */
  | 'refused'
  /** It is lost on its way there; its caller cannot know that. */
  | 'lost_request'
  /** It takes effect, and its answer is lost. */
  | 'lost_answer'
  /** The process dies before its call takes effect: no answer, and nothing is answered any more. */
  | 'crash_before'
  /** The process dies after its call took effect. */
  | 'crash_after'

export interface FaultStep {
  /** Counted from 0, over all calls of this store. */
  readonly index: number
  readonly call: 'apply' | 'transaction'
  /** Null for a transaction, which is one step as a whole. */
  readonly request: Request | null
}

export interface FaultyOptions {
  /** Faults by chance, the same ones for the same seed. @default none by chance */
  readonly seed?: number
  /** Faults by plan; it decides before chance does. @default none by plan */
  readonly script?: (step: FaultStep) => StoreFault | undefined
  /** How often a call of a seeded store goes wrong: from 0 to 1. @default 0.2 */
  readonly rate?: number
  /** Called before every call, and again before its answer. @default no delay */
  readonly delay?: () => Promise<void>
}

export interface Faults {
  /** From now on nothing is answered, as if the process had died in the middle of whatever it does. */
  crash(): void
  /** From now on everything goes well. */
  heal(): void
  readonly crashed: boolean
  /** What went wrong so far, in order. */
  readonly log: readonly { readonly step: FaultStep; readonly fault: StoreFault }[]
}

const RATE = 0.2
const byChance = ['refused', 'lost_request', 'lost_answer'] as const

/**
 * The same store behind a bad network. It loses requests and answers and dies between any two steps, and never reveals more
 * than a real caller could know: a lost call is `applied: 'maybe'`.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { memoryStore } from 'onceonly/memory'
 * import { createFaultyStore } from 'onceonly/testing'
 *
 * const store = createFaultyStore(memoryStore(), { seed: 1, rate: 0.3 })
 * const once = createLedger({ store, background: false })
 * console.log(store.faults.log)
 * ```
 */
export function createFaultyStore<S extends Store>(store: S, options: FaultyOptions): S & { readonly faults: Faults } {
  const random = createRandom(options.seed ?? 0)
  const rate = options.seed === undefined ? 0 : (options.rate ?? RATE)
  const log: { step: FaultStep; fault: StoreFault }[] = []
  let steps = 0
  let crashed = false
  let healed = false

  function draw(step: FaultStep): StoreFault {
    if (healed) return 'none'
    const planned = options.script?.(step)
    const fault = planned ?? (random.chance(rate) ? random.pick(byChance) : 'none')
    if (fault !== 'none') log.push({ step, fault })
    return fault
  }

  async function through<T>(step: Omit<FaultStep, 'index'>, call: () => Awaitable<T>): Promise<T> {
    if (crashed) return await never()
    const fault = draw({ ...step, index: steps++ })
    if (fault === 'refused') throw new OnceError('store_unavailable', 'Refused on purpose.', { applied: 'no' })
    await options.delay?.()
    if (fault === 'lost_request') throw lost('request')
    if (fault === 'crash_before') crashed = true
    if (crashed) return await never()
    const answer = await call()
    await options.delay?.()
    if (fault === 'crash_after') crashed = true
    if (crashed) return await never()
    if (fault === 'lost_answer') throw lost('answer')
    return answer
  }

  const faults: Faults = {
    crash: () => void (crashed = true),
    heal: () => void (healed = true),
    get crashed() {
      return crashed
    },
    log,
  }
  const faulty = { ...store, faults, claims: faultyClaims(store.claims, through) }
  return store.transactions === undefined
    ? faulty
    : { ...faulty, transactions: faultyTransactions(store.transactions, through) }
}

type Through = <T>(step: Omit<FaultStep, 'index'>, call: () => Awaitable<T>) => Promise<T>

function faultyClaims(claims: Claims, through: Through): Claims {
  return {
    read: (ids, call) => claims.read(ids, call),
    watch: (wake) => claims.watch(wake),
    apply: (request, call) => through({ call: 'apply', request }, () => claims.apply(request, call)),
  }
}

/** The whole transaction is one step: what is lost of it is the COMMIT or its answer. */
function faultyTransactions<Tx>(transactions: Transactions<Tx>, through: Through): Transactions<Tx> {
  return {
    run: <T>(work: (session: Session<Tx>) => Promise<T>, call: Parameters<Transactions<Tx>['run']>[1]) =>
      through({ call: 'transaction', request: null }, () => transactions.run(work, call)),
  }
}

function lost(what: 'request' | 'answer'): OnceError {
  return new OnceError('store_unavailable', `The ${what} was lost on purpose.`, { applied: 'maybe' })
}

function never(): Promise<never> {
  return new Promise(() => undefined)
}
