import type { IncomingMessage } from 'node:http'
import { clientKey } from '../front/addresses.ts'
import { Crowded } from './crowded.ts'
import type { Passing } from './headers.ts'
import { clientBehind, requestHeaders } from './headers.ts'
import { gatewayLimits } from './limits.ts'
import type { Upstream } from './upstream.ts'
import { keepPlace, placeAt, send } from './upstream.ts'

/** The authorizer could not decide whether the caller may see the recorded response. */
export class NoAuthorizer extends Error {
  constructor(cause: unknown) {
    super('The service that decides about access cannot be reached.', { cause })
    this.name = 'NoAuthorizer'
  }
}

/** Of the body, which is not sent, of conditions, and of the command that is not to happen again. */
const left = /^(content-.*|transfer-encoding|if-.*|range|idempotency-key)$/

/** Asks the upstream whether this caller, with the headers of this request, still has access. */
export async function allowedBy(
  upstream: Upstream,
  path: string,
  message: IncomingMessage,
  passing: Passing,
): Promise<boolean> {
  const { trustForwarded, host } = passing
  const client = clientBehind(message, passing)
  const raw = requestHeaders({ message, trustForwarded, client, host: host === 'upstream' ? upstream.host : null })
  const headers: string[] = []
  for (let at = 0; at < raw.length; at += 2) {
    if (!left.test((raw[at] as string).toLowerCase())) headers.push(raw[at] as string, raw[at + 1] as string)
  }
  headers.push('X-Original-Method', message.method ?? '', 'X-Original-Uri', message.url ?? '/')
  const shareKey = clientKey(message, trustForwarded)
  if (!(await placeAt(upstream, shareKey))) throw new NoAuthorizer(new Crowded())
  const request = upstream.open({ method: 'GET', target: path, headers }, 'fresh')
  keepPlace(request, upstream.places, shareKey)
  const { authorizeMs } = gatewayLimits
  const times = { connectMs: authorizeMs, answerMs: authorizeMs, idleMs: authorizeMs }
  const sent = await send(request, times, () => request.end())
  if (sent.kind !== 'answered') throw new NoAuthorizer(sent.error)
  const { answer } = sent
  answer.on('error', () => {}).resume()
  const status = answer.statusCode ?? 0
  // A service that is broken has not said no.
  if (status >= 500 || status === 429) throw new NoAuthorizer(new Error(`It answered ${status}.`))
  return status >= 200 && status < 300
}
