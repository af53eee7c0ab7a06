import type { Identity } from 'onceonly'
import type { MessageRow } from './message.ts'

export const DELIVERY_OPERATION = 'messages.deliver'
/** The deliveries of a workspace belong to the messages system, whichever caller sent the message. */
const CALLER = 'messages'

/** Under which identity a message is delivered: its record is what operators see of it. */
export function deliveryOf({ workspace_id: tenant, id: key }: Pick<MessageRow, 'workspace_id' | 'id'>): Identity {
  return { tenant, caller: CALLER, operation: DELIVERY_OPERATION, key }
}
