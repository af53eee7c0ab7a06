export type { ConsumeOptions } from './consume.ts'
export type { InboxDeadLetter, InboxDeadLetterFilter } from './dead-letters.ts'
export type { InboxEvent, InboxListener, InboxWarning } from './events.ts'
export type { Inbox } from './inbox.ts'
export { createInbox } from './inbox.ts'
export type { InboxDeadLetters, MessageExplanation, Redriven, RedriveOptions } from './operate.ts'
export type { InboxOptions, OrderedOptions } from './options.ts'
export type {
  Acknowledgement,
  IncomingMessage,
  Receive,
  SubscribeOptions,
  Subscriber,
  Subscription,
} from './port.ts'
export type { Postponed } from './postpone.ts'
export { postpone } from './postpone.ts'
export type { First, ParkReason, Receipt, Settled } from './receipt.ts'
export { acknowledgementOf } from './receipt.ts'
export type { InboxContext, InboxEffect } from './settle.ts'
