import type { IncomingMessage } from '../port.ts'
import type { HookRequest } from './request.ts'
import { incoming, jsonOf, neededHeader, objectOf, textIn, textOf } from './request.ts'
import type { TimedOptions } from './signature.ts'
import { badSignature, digestOf, isSignedBy, secretsOf, timeOf } from './signature.ts'

const HEADER = 'stripe-signature'

/**
 * A Stripe webhook: the event's own id, which all retries share; the topic is the event's type. Give `stripeFingerprint` to
 * the inbox, because a retry carries another number of pending webhooks.
 */
export function readStripeWebhook({ headers, body }: HookRequest, options: TimedOptions): IncomingMessage {
  const { timestamp, signatures } = signedParts(neededHeader(headers, HEADER))
  if (!isSignedBy(secretsOf(options), [`${timestamp}.`, body], signatures)) {
    throw badSignature(HEADER, 'does not belong to this message')
  }
  timeOf(timestamp, HEADER, options)
  const text = textOf(body)
  const event = objectOf(jsonOf(text), 'body')
  return incoming({ id: textIn(event, 'id'), topic: textIn(event, 'type'), body: text })
}

/** `t=SECONDS,v1=HEX,v1=HEX,v0=…`: version 0 is for test events only, and proves nothing. */
function signedParts(header: string): { readonly timestamp: string; readonly signatures: readonly Uint8Array[] } {
  const pairs = header.split(',').map((pair) => pair.trim().split('='))
  const valuesOf = (name: string) => pairs.filter(([each]) => each === name).map(([, value]) => value ?? '')
  const [timestamp, ...more] = valuesOf('t')
  if (timestamp === undefined || more.length > 0) throw badSignature(HEADER, 'holds no time, or several')
  const signatures = valuesOf('v1')
    .map((value) => digestOf(value, 'hex'))
    .filter((each) => each !== null)
  if (signatures.length === 0) throw badSignature(HEADER, 'holds no signature of version v1')
  return { timestamp, signatures }
}

/** What of a Stripe event is the same in every delivery. */
export function stripeFingerprint(body: unknown): unknown {
  const { pending_webhooks: _changes, ...event } = objectOf(body, 'body')
  return event
}
