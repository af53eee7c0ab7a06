import type { IncomingMessage } from '../port.ts'
import type { HookRequest } from './request.ts'
import { headerOf, incoming, neededHeader, textOf } from './request.ts'
import type { TimedOptions } from './signature.ts'
import { badOption, badSignature, bytesOfBase64, digestOf, isSignedBy, secretsOf, timeOf } from './signature.ts'

const PREFIX = 'whsec_'

export interface StandardWebhookOptions extends TimedOptions {
  /** The topic of its messages here. @default 'webhook' */
  readonly topic?: string
}

/**
 * A webhook by the Standard Webhooks specification, also under the names that it had at Svix: `webhook-id` is the same over all retries, the signature covers id,
 * time and body. Throws `unreadable_message` or `bad_signature`, naming the header at fault.
 *
 * @example
 * ```ts
 * import { readStandardWebhook } from 'onceonly/webhooks'
 *
 * export function receive(request: { headers: Headers; body: string }) {
 *   return readStandardWebhook(request, { secrets: process.env.WEBHOOK_SECRET ?? '' })
 * }
 * ```
 */
export function readStandardWebhook({ headers, body }: HookRequest, options: StandardWebhookOptions): IncomingMessage {
  // All three headers of one family: no sender signs a mixture.
  const family = headerOf(headers, 'webhook-id') === null && headerOf(headers, 'svix-id') !== null ? 'svix' : 'webhook'
  const id = neededHeader(headers, `${family}-id`)
  const timestamp = neededHeader(headers, `${family}-timestamp`)
  const signed = `${family}-signature`
  const signatures = signaturesIn(neededHeader(headers, signed), signed)
  const keys = secretsOf(options).map(keyOfSecret)
  if (!isSignedBy(keys, [`${id}.${timestamp}.`, body], signatures)) {
    throw badSignature(signed, 'does not belong to this message')
  }
  // After the signature: the timestamp of an unsigned message means nothing.
  timeOf(timestamp, `${family}-timestamp`, options)
  return incoming({ id, topic: options.topic ?? 'webhook', body: textOf(body) })
}

/** `v1,BASE64 v1,BASE64 v1a,…`: other versions are for other kinds of keys. */
function signaturesIn(header: string, name: string): readonly Uint8Array[] {
  const found = header
    .split(' ')
    .filter((each) => each.startsWith('v1,'))
    .map((each) => digestOf(each.slice('v1,'.length), 'base64'))
    .filter((each) => each !== null)
  if (found.length === 0) throw badSignature(name, 'holds no signature of version v1')
  return found
}

/** Never an empty key, which a single character would decode to: any sender could sign with it. */
function keyOfSecret(secret: string): Uint8Array {
  const key = bytesOfBase64(secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret)
  if (key !== null && key.byteLength > 0) return key
  throw badOption('secrets', `must be ${PREFIX} and base64`)
}
