import { OnceError } from '../../src/ledger/core/errors.ts'
import type { Fence } from '../../src/ledger/core/identity.ts'
import type { Request } from '../../src/ledger/core/request.ts'
import type { AppliedDecision, TransactionalStore } from '../../src/ledger/store/port.ts'
import type { MemoryTx } from '../../src/ledger/stores/memory/index.ts'
import type { Random } from '../../src/testing/random.ts'
import type { SimulatedProcess, Simulation } from '../../test/support/simulation.ts'
import type { Weather } from './scenario.ts'

/** What one process needs to reach the store, and what may happen to it on the way. */
export interface LinkParts {
  readonly name: string
  readonly simulation: Simulation
  readonly random: Random
  readonly process: SimulatedProcess
  /** Asked at every arrival: the store may be another one by then. */
  store(): TransactionalStore<MemoryTx>
  weather(): Weather
  /** How long a packet that got stuck stays under way, and how long a process that stops stands still. */
  readonly longMs: number
  crash(why: string): void
  note(what: string): void
  /** A process received a decision; a decision that was never delivered does not count. */
  heard(request: Request, applied: AppliedDecision): void
  /** Marks a decision that only a commit makes true. */
  inSession<T>(apply: () => T): T
  beginTransaction(): void
  /** A process learnt that a transaction failed, under which these fences were granted. */
  transactionFailed(fences: readonly Fence[]): void
}

export type Fate = 'through' | 'refused' | 'lost_request' | 'lost_answer' | 'twice'

export interface Wire extends LinkParts {
  delayMs(): number
  draw(): Fate
  isCut(): boolean
  /** Something reaches the process, unless it crashes or stops in that very moment. */
  deliver(act: () => void): void
  send<T>(message: Message<T>): Promise<T>
}

export interface Message<T> {
  readonly what: string
  readonly timeoutMs: number
  /** A late copy of a query is harmless, and no machine repeats an operator's action. */
  readonly repeatable: boolean
  perform(): Promise<T>
}

export function unavailable(applied: 'no' | 'maybe', why: string): OnceError {
  return new OnceError('store_unavailable', `The simulated network lost the store (${why}).`, { applied })
}

export function createWire(parts: LinkParts, isCut: () => boolean): Wire {
  const { random, process, weather } = parts
  const { runtime } = process

  function delayMs(): number {
    const { slow, stuck } = weather()
    if (random.chance(stuck)) return random.below(parts.longMs)
    if (random.chance(slow)) return random.below(2_000)
    return 1 + random.below(12)
  }

  function draw(): Fate {
    if (isCut()) return random.chance(0.3) ? 'refused' : 'lost_request'
    const { refused, lostRequest, lostAnswer, twice } = weather()
    const at = random.next()
    if (at < refused) return 'refused'
    if (at < refused + lostRequest) return 'lost_request'
    if (at < refused + lostRequest + lostAnswer) return 'lost_answer'
    return at < refused + lostRequest + lostAnswer + twice ? 'twice' : 'through'
  }

  function deliver(act: () => void): void {
    runtime.setTimer(
      delayMs(),
      () => {
        if (random.chance(weather().crash)) parts.crash('as an answer came')
        else if (random.chance(weather().pause)) {
          const ms = random.below(parts.longMs)
          parts.note(`${parts.name} stands still for ${ms} ms as an answer came`)
          process.pause(ms)
          runtime.setTimer(0, act, false)
        } else act()
      },
      false,
    )
  }

  function send<T>(message: Message<T>): Promise<T> {
    return sendOver({ parts, delayMs, draw, isCut, deliver }, message)
  }

  return { ...parts, delayMs, draw, isCut, deliver, send }
}

type Ways = Pick<Wire, 'delayMs' | 'draw' | 'isCut' | 'deliver'> & { readonly parts: LinkParts }

function sendOver<T>({ parts, delayMs, draw, isCut, deliver }: Ways, message: Message<T>): Promise<T> {
  const { simulation, random, process } = parts
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const fate = draw()
  if (fate !== 'through') parts.note(`${parts.name} ${message.what}: ${fate}`)
  const limit = process.runtime.setTimer(
    message.timeoutMs,
    () => reject(unavailable('maybe', 'no answer in time')),
    false,
  )
  const answer = (act: () => void) => {
    // A broken connection is noticed soon, a silent one only by the time limit.
    if (isCut()) return
    deliver(() => {
      limit.cancel()
      act()
    })
  }
  const arrive = (heard: boolean) => {
    if (isCut()) return
    const home = parts.store()
    // A store that was lost meanwhile answers no call.
    const reply = (act: () => void) => {
      if (heard && parts.store() === home) answer(act)
    }
    void message.perform().then(
      (value) => reply(() => resolve(value)),
      (error: unknown) => reply(() => reject(error as Error)),
    )
  }
  switch (fate) {
    case 'refused':
      deliver(() => {
        limit.cancel()
        reject(unavailable('no', 'refused'))
      })
      break
    case 'lost_request':
      if (random.chance(0.5)) answer(() => reject(unavailable('maybe', 'request lost')))
      break
    case 'lost_answer':
      simulation.timer(delayMs(), () => arrive(false))
      if (random.chance(0.5)) answer(() => reject(unavailable('maybe', 'answer lost')))
      break
    case 'twice':
      simulation.timer(delayMs(), () => arrive(true))
      // Often soon after the first copy has done its work, sometimes much later.
      if (message.repeatable)
        simulation.timer(delayMs() + random.below(random.pick([500, parts.longMs])), () => arrive(false))
      break
    case 'through':
      simulation.timer(delayMs(), () => arrive(true))
  }
  return promise
}
