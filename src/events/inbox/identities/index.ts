/** `onceonly/webhooks`: readers of webhooks and notifications, which verify signatures and give messages for the inbox. */

export { readCloudEvents } from './cloud-events.ts'
export { readGithubWebhook } from './github.ts'
export type { HookHeaders, HookRequest } from './request.ts'
export type { S3Event } from './s3.ts'
export { compareS3Sequencers, isStaleS3Event, readS3Notification } from './s3.ts'
export type { SignedOptions, TimedOptions } from './signature.ts'
export type { StandardWebhookOptions } from './standard-webhooks.ts'
export { readStandardWebhook } from './standard-webhooks.ts'
export { readStripeWebhook, stripeFingerprint } from './stripe.ts'
