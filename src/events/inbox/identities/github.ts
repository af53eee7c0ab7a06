import type { IncomingMessage } from '../port.ts'
import type { HookRequest } from './request.ts'
import { incoming, neededHeader, textOf } from './request.ts'
import type { SignedOptions } from './signature.ts'
import { badSignature, digestOf, isSignedBy, secretsOf } from './signature.ts'

const HEADER = 'x-hub-signature-256'
const PREFIX = 'sha256='

/**
 * A GitHub webhook: `X-GitHub-Delivery` stays the same when a delivery is repeated; the topic is the name of the event.
 * GitHub signs the body alone, so a signed body can be sent again under another id; where that matters, give the inbox an
 * `intent` made of the body.
 */
export function readGithubWebhook({ headers, body }: HookRequest, options: SignedOptions): IncomingMessage {
  const id = neededHeader(headers, 'x-github-delivery')
  const topic = neededHeader(headers, 'x-github-event')
  const given = neededHeader(headers, HEADER)
  const signature = given.startsWith(PREFIX) ? digestOf(given.slice(PREFIX.length), 'hex') : null
  if (signature === null) throw badSignature(HEADER, `is not ${PREFIX} and 64 hexadecimal digits`)
  if (!isSignedBy(secretsOf(options), [body], [signature]))
    throw badSignature(HEADER, 'does not belong to this message')
  return incoming({ id, topic, body: textOf(body) })
}
