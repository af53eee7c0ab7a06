export type { ConsumeOptions } from './consume.ts'
export type { InboxDeadLetter, InboxDeadLetterFilter } from './dead-letters.ts'
export type { InboxEvent, InboxListener, InboxWarning } from './events.ts'
export { readCloudEvents } from './identities/cloud-events.ts'
export { readGithubWebhook } from './identities/github.ts'
export type { HookHeaders, HookRequest } from './identities/request.ts'
export type { S3Event } from './identities/s3.ts'
export { compareS3Sequencers, isStaleS3Event, readS3Notification } from './identities/s3.ts'
export type { SignedOptions, TimedOptions } from './identities/signature.ts'
export type { StandardWebhookOptions } from './identities/standard-webhooks.ts'
export { readStandardWebhook } from './identities/standard-webhooks.ts'
export { readStripeWebhook, stripeFingerprint } from './identities/stripe.ts'
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
