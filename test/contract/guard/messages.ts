import type { EffectContext, Ledger } from 'onceonly'
import { limits } from 'onceonly'
import type { Guard, GuardOptions } from 'onceonly/guard'
import { createGuard } from 'onceonly/guard'

export interface Message {
  readonly workspace: string
  readonly phone?: string | null
  readonly email?: string | null
  readonly body: string
}

export const hello: Message = { workspace: 'w', phone: '+491', body: 'hello' }
export const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Waits for an original in flight as long as a busy machine may need, unless a test says otherwise. */
export function guardOver(ledger: Ledger<unknown>, options: Partial<GuardOptions<Message>> = {}): Guard<Message> {
  const identity: GuardOptions<Message>['identity'] = (m) => [m.workspace, m.phone, m.email, m.body]
  return createGuard({ ledger, name: 'messages', waitMs: limits.waitMaxMs, identity, ...options })
}

/** Sends like a real system: the original exists before the provider is called. */
export function sender(sent: string[], id: string, slowMs = 0) {
  return async (attempt: EffectContext | null) => {
    await pause(slowMs)
    await attempt?.attach({ type: 'message', id })
    sent.push(id)
    return id
  }
}
