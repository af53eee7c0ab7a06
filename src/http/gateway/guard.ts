import { digestParts } from '../../ledger/core/digest.ts'
import type { Incoming, IncomingBody } from '../protocol/exchange.ts'
import { answerBody } from '../protocol/large-body.ts'
import { normaliseTarget } from '../protocol/path.ts'
import { conditionsOf, questionOf } from '../protocol/read.ts'

/**
 * Inside of the gateway only: the key that a request without one gets. No client can send it, as it is asked for here.
 */
export const CONTENT_KEY_HEADER = 'onceonly-content-key'

/**
 * For callers that send no key: what they ask for is the key. Content is not identity, so that a wanted repeat within
 * the window is taken for a retry. Throws `bad_input` for a body that is not what it says it is.
 */
export async function keyedByContent(incoming: Incoming): Promise<Incoming> {
  const body = await incoming.body()
  const key = `content-${'bytes' in body ? await contentDigest(incoming, body) : ''}`
  return {
    // The body is read again rather than held: waiting for a concurrent copy may take long, and bodies are large.
    ...incoming,
    header: (name) => (name === CONTENT_KEY_HEADER ? [key] : incoming.header(name)),
  }
}

async function contentDigest(
  incoming: Incoming,
  body: Extract<IncomingBody, { readonly bytes: Uint8Array }>,
): Promise<string> {
  const question = questionOf(incoming, body, 1, null)
  const { fingerprint } = (await incoming.askElsewhere?.(question)) ?? answerBody(question)
  const target = normaliseTarget(incoming.target)
  const place = 'problem' in target ? [incoming.target, null] : [target.path, target.query]
  // All that a retry under a key must repeat, too.
  return digestParts([incoming.method, ...place, JSON.stringify(conditionsOf(incoming)), fingerprint])
}
