import { DAY, HOUR } from '../ledger/core/limits.ts'
import type { Offer } from './channel.ts'

export type KeyLocation =
  | { readonly header: string }
  | { readonly field: string }
  | { readonly list: string; readonly tag: string }

/** What a provider does with keys, by its public documentation. Facts may change: give your own profile if they did. */
export interface ProviderProfile {
  readonly name: string
  readonly offer: Offer
  /** Where the key or the tag goes: a header, a field of the body, or a list in the body of `{ Name, Value }` pairs. */
  readonly carries: KeyLocation | null
  /** How it takes its bodies; JSON, when left out. */
  readonly body?: 'json' | 'form'
  /** The longest key that it takes, in characters. */
  readonly keyChars: number
  /** What a key may be made of. */
  readonly keyCharset: RegExp
  /** Where this holds. */
  readonly endpoints: string
}

const native = (
  windowMs: number,
  facts: { readonly comparesBody: boolean; readonly keepsFailures: boolean },
): Offer => ({
  kind: 'native',
  windowMs,
  ...facts,
})
const key = { header: 'Idempotency-Key' }
const printable = /^[\x21-\x7e]*$/
const correlate = { kind: 'correlate' } as const

/**
 * Those that document request idempotency for sending are `native`. The others take a tag that a person or a query can
 * find again: none of them promises that a second request with it sends nothing, so that none is repeated blindly.
 */
export const providers = {
  resend: {
    name: 'Resend',
    offer: native(DAY, { comparesBody: true, keepsFailures: false }),
    carries: key,
    keyChars: 256,
    keyCharset: printable,
    endpoints: 'POST /emails, POST /emails/batch',
  },
  stripe: {
    name: 'Stripe',
    offer: native(DAY, { comparesBody: true, keepsFailures: true }),
    carries: key,
    keyChars: 255,
    keyCharset: printable,
    body: 'form',
    endpoints: 'every POST of API v1',
  },
  telnyx: {
    name: 'Telnyx',
    offer: native(DAY, { comparesBody: true, keepsFailures: false }),
    carries: key,
    keyChars: 255,
    keyCharset: printable,
    endpoints: 'endpoints whose reference declares the header',
  },
  knock: {
    name: 'Knock',
    offer: native(DAY, { comparesBody: false, keepsFailures: false }),
    carries: key,
    keyChars: 255,
    keyCharset: printable,
    endpoints: 'endpoints that are marked as idempotent, triggers of workflows among them',
  },
  nylas: {
    name: 'Nylas',
    offer: native(HOUR, { comparesBody: true, keepsFailures: true }),
    carries: key,
    keyChars: 256,
    keyCharset: printable,
    endpoints: 'POST …/messages/send',
  },
  sendgrid: {
    name: 'SendGrid',
    offer: correlate,
    carries: { field: 'custom_args.onceonly_key' },
    keyChars: 255,
    keyCharset: printable,
    endpoints: 'POST /v3/mail/send',
  },
  postmark: {
    name: 'Postmark',
    offer: correlate,
    carries: { field: 'Metadata.onceonly_key' },
    keyChars: 80,
    keyCharset: printable,
    endpoints: 'POST /email',
  },
  ses: {
    name: 'Amazon SES',
    offer: correlate,
    carries: { list: 'EmailTags', tag: 'onceonly_key' },
    keyChars: 256,
    keyCharset: /^[\w-]*$/,
    endpoints: 'SendEmail of API v2',
  },
  twilio: {
    name: 'Twilio',
    offer: { kind: 'none' },
    carries: null,
    keyChars: 0,
    keyCharset: printable,
    body: 'form',
    endpoints: 'POST …/Messages.json',
  },
  smtp: {
    name: 'SMTP',
    offer: correlate,
    carries: { header: 'Message-ID' },
    keyChars: 200,
    keyCharset: printable,
    endpoints: 'any server; some drop a second message of one id, none promises it',
  },
  http: {
    name: 'HTTP with Idempotency-Key',
    offer: native(DAY, { comparesBody: true, keepsFailures: false }),
    carries: key,
    keyChars: 255,
    keyCharset: printable,
    endpoints: 'services that keep the IETF draft, such as those behind this package',
  },
} as const satisfies Readonly<Record<string, ProviderProfile>>
