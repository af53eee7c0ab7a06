import { OnceError } from '../../core/errors.ts'
import type { Request } from '../../core/request.ts'
import type { AppliedDecision } from '../../store/port.ts'
import { answerUnchanged } from '../../store/sql/decide.ts'
import { unfit } from '../../store/sql/fit.ts'
import { settlesPlainly } from './settle.ts'
import type { Executor } from './statement.ts'
import type { Steps } from './steps.ts'

export interface SessionTools {
  readonly steps: Steps
  readonly on: Executor
  /** Collects the records whose waiters are to be notified after the commit. */
  readonly woken: string[]
}

/** Rounds for a record that others keep inserting and removing. */
const ROUNDS = 5

/** Decides one request inside an open transaction, by the same statements as a batch. */
export async function decideAlone(tools: SessionTools, request: Request): Promise<AppliedDecision> {
  const { steps, on, woken } = tools
  const refused = unfit(request)
  if (refused !== null) throw refused
  const quick = await decideQuickly(tools, request)
  if (quick !== null) return quick
  const [same] = await answerUnchanged(steps.read, on, [request])
  if (same !== null && same !== undefined) return same
  for (let round = 0; round < ROUNDS; round++) {
    const { decided, woken: some } = await steps.decide(on, [request], false)
    woken.push(...some)
    const [answer] = decided
    if (typeof answer === 'object') return answer
  }
  throw new OnceError('store_busy', 'Others kept inserting and removing this record.')
}

async function decideQuickly({ steps, on, woken }: SessionTools, request: Request): Promise<AppliedDecision | null> {
  switch (request.kind) {
    case 'claim': {
      const [answer] = await steps.insertClaims(on, [request])
      return answer ?? null
    }
    case 'settle': {
      if (!settlesPlainly(request)) return null
      const { answers, woken: some } = await steps.settle(on, [request])
      woken.push(...some)
      return answers[0] ?? null
    }
    case 'start':
    case 'renew':
    case 'attach': {
      const { answers, woken: some } = await steps.hold(on, [request])
      woken.push(...some)
      return answers[0] ?? null
    }
    case 'release':
    case 'reconcile':
    case 'probe':
    case 'resolve':
    case 'forget':
    case 'unique':
    case 'replace':
      return null
  }
}
