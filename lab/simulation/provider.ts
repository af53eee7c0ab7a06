import type { Fence } from '../../src/ledger/core/identity.ts'
import { limits, SECOND } from '../../src/ledger/core/limits.ts'
import { final, notDone } from '../../src/ledger/core/verdict.ts'
import type { ProbeAnswer } from '../../src/ledger/definition.ts'
import { cannotTell, happened, notFound, prevented } from '../../src/ledger/definition.ts'
import type { Random } from '../../src/testing/random.ts'
import type { SimulatedProcess, Simulation } from '../../test/support/simulation.ts'
import type { Life } from './life.ts'
import type { Trace } from './trace.ts'

/** A bank, a mail service: an outside system that does what is asked, and whose answer may not come. */
export interface Provider {
  /** Rejects with what an effect should throw. */
  call(order: Order): Promise<unknown>
  probe(question: Question): Promise<ProbeAnswer>
  /** The truth about an effect key: the value of the last time that it happened, or null. */
  truth(effectKey: string): { readonly value: unknown } | null
  /** A number that no other result has, so that two answers can be distinguished. */
  number(): number
  /** The store forgot its fences, so effect keys may come again: what happened under them is another story. */
  reset(): void
  /** From now on nothing goes wrong here. */
  heal(): void
}

export interface Order {
  readonly life: Life
  readonly process: SimulatedProcess
  readonly host: string
  readonly effectKey: string
  readonly incarnation: Fence
  readonly fence: Fence
  readonly attempt: number
}

export interface Question {
  readonly life: Life
  readonly process: SimulatedProcess
  readonly host: string
  readonly effectKey: string
  readonly attempt: number
}

interface Account {
  times: number
  value: unknown
  /** Attempts up to this one are refused. */
  preventedTo: number
}

/** A request is under way for less than the grace, so that "not found" can be trusted after the longest duration. */
const REQUEST_MOST_MS = limits.leaseGraceMs - 1 * SECOND
const PATIENCE_MS = 2 * SECOND

type Fate = 'through' | 'refused' | 'unavailable' | 'rejected' | 'lost_request' | 'lost_answer' | 'slow'

export interface ProviderParts {
  readonly simulation: Simulation
  readonly random: Random
  readonly trace: Trace
  /** What pointers point at. */
  readonly things: Map<string, unknown>
}

export function createProvider({ simulation, random, trace, things }: ProviderParts): Provider {
  const accounts = new Map<string, Account>()
  let healthy = false
  let numbers = 0
  const number = () => ++numbers

  function accountOf(effectKey: string): Account {
    const known = accounts.get(effectKey)
    if (known !== undefined) return known
    const account = { times: 0, value: null, preventedTo: 0 }
    accounts.set(effectKey, account)
    return account
  }

  /** The effect itself. */
  function happen(order: Order): unknown {
    const { life, effectKey, incarnation, fence, attempt } = order
    const { kind } = life.command.operation
    const account = accountOf(effectKey)
    if (attempt <= account.preventedTo) throw notDone(new Error('The provider was asked to refuse this attempt.'))
    if (kind === 'rerun' && account.times > 0) return account.value
    account.times += 1
    account.value = { effectKey, fence, n: number() }
    things.set(String(numbers), account.value)
    trace.note(`provider: effect of ${life.command.name} happens under fence ${fence}, time ${account.times}`)
    const allowed = 1 + (life.excuses.get(incarnation) ?? 0)
    if (kind !== 'rerun' && kind !== 'repeatable' && account.times > allowed) {
      trace.fail(
        'externalEffectsHappenOnce',
        `${life.command.name}: incarnation ${incarnation} happened ${account.times} times`,
      )
    }
    return account.value
  }

  function drawFate(): Fate {
    if (healthy || random.chance(0.6)) return 'through'
    return random.pick(['refused', 'unavailable', 'rejected', 'lost_request', 'lost_answer', 'slow'])
  }

  function call(order: Order): Promise<unknown> {
    const { process } = order
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    if (process.crashed) return promise
    const fate = drawFate()
    if (fate !== 'through') trace.note(`${order.host} provider of ${order.life.command.name}: ${fate}`)
    const later = (act: () => void) => process.runtime.setTimer(1 + random.below(60), act, false)
    const patience = process.runtime.setTimer(PATIENCE_MS, () => reject(new Error('The provider is silent.')), false)
    const answer = (act: () => void) =>
      later(() => {
        patience.cancel()
        act()
      })
    const arrive = (heard: boolean) => {
      try {
        const value = happen(order)
        if (heard) answer(() => resolve(value))
      } catch (refusal) {
        if (heard) answer(() => reject(refusal as Error))
      }
    }
    switch (fate) {
      case 'refused':
        answer(() => reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })))
        break
      case 'unavailable':
        answer(() =>
          reject(notDone(new Error('unavailable'), random.chance(0.5) ? {} : { retryAfterMs: 1_000 }) as never),
        )
        break
      case 'rejected':
        answer(() => reject(final(Object.assign(new Error('rejected'), { data: { n: number() } })) as never))
        break
      case 'lost_request':
        break
      case 'lost_answer':
        simulation.timer(random.below(100), () => arrive(false))
        break
      case 'slow':
        simulation.timer(random.below(REQUEST_MOST_MS), () => arrive(true))
        break
      case 'through':
        simulation.timer(1 + random.below(60), () => arrive(true))
    }
    return promise
  }

  function answerTo({ life, effectKey, attempt }: Question): ProbeAnswer {
    const account = accountOf(effectKey)
    if (account.times > 0) return happened(account.value)
    if (!healthy && random.chance(0.2)) return cannotTell
    if (life.command.operation.kind === 'not_found') return notFound
    account.preventedTo = Math.max(account.preventedTo, attempt)
    return prevented
  }

  function probe(question: Question): Promise<ProbeAnswer> {
    const { process, life, host } = question
    const { promise, resolve, reject } = Promise.withResolvers<ProbeAnswer>()
    const over = (act: () => void) => process.runtime.setTimer(1 + random.below(100), act, false)
    if (!healthy && random.chance(0.1)) {
      // The other half never answers at all.
      if (random.chance(0.5)) over(() => reject(new Error('The provider cannot be asked.')))
      return promise
    }
    simulation.timer(random.below(100), () => {
      const answer = answerTo(question)
      trace.note(`${host} probe of ${life.command.name}: ${answer.answer}`)
      over(() => resolve(answer))
    })
    return promise
  }

  return {
    call,
    probe,
    number,
    truth(effectKey) {
      const account = accounts.get(effectKey)
      return account === undefined || account.times === 0 ? null : { value: account.value }
    },
    reset: () => accounts.clear(),
    heal() {
      healthy = true
    },
  }
}
