import { isOnceError } from 'onceonly'
import type { Engine, RunView } from 'onceonly/run'
import type { Resolution } from '../messages/deliver.ts'
import type { ResolveCommand } from './document.ts'
import { notUnknown } from './not-unknown.ts'
import type { MessageChannel, MessagePlan } from './send.ts'

interface Parts {
  readonly engine: Pick<Engine, 'get' | 'resolve'>
  readonly messages: Pick<MessageChannel, 'settle'>
}

const NOT_SENT = 'A person found that it was not sent'

/** An operator's word on a step whose outcome is unknown, and on the message of that step. */
export function createResolve({ engine, messages }: Parts) {
  return async (id: string, key: string, { kind, result = null, error }: ResolveCommand): Promise<RunView> => {
    const step = (await engine.get(id)).steps.find((each) => each.key === key)
    // Nor if it becomes unknown a moment later: the word is about what was seen, and its message would be passed over.
    if (step?.state !== 'unknown') throw notUnknown(`The step ${key} of ${id} is ${step?.state ?? 'not there'}.`)
    const why = error ?? (kind === 'failed' ? 'A person found that it failed' : NOT_SENT)
    // The message first: a reader in between sees the same.
    const settled = isMessage(step.plan) && (await messages.settle(step.plan, key, resolutionOf(kind, why)))
    const given =
      kind === 'succeeded' ? { kind, result } : kind === 'failed' ? { kind, error: new Error(why) } : { kind }
    try {
      await engine.resolve(id, key, given)
    } catch (refused) {
      // A probe came in between, and found what the operator had just recorded.
      if (!settled || !isOnceError(refused, 'not_resolvable')) throw refused
    }
    return engine.get(id)
  }
}

function isMessage(plan: unknown): plan is MessagePlan {
  return typeof plan === 'object' && plan !== null && 'leadId' in plan && 'message' in plan
}

function resolutionOf(kind: ResolveCommand['kind'], error: string): Resolution {
  switch (kind) {
    case 'succeeded':
      return { kind: 'sent', providerMessageId: null }
    case 'failed':
      return { kind, error }
    case 'not_done':
      return { kind: 'not_sent' }
  }
}
