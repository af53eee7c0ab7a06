import { digestParts } from '../../ledger/core/digest.ts'
import { OnceError } from '../../ledger/core/errors.ts'
import type { Identity } from '../../ledger/core/identity.ts'
import { SECOND } from '../../ledger/core/limits.ts'
import type { RegionRouter } from '../region/region.ts'
import { AnswerTooLarge } from '../region/send.ts'
import { CLIENT_HEADER, REGION_HEADER } from '../region/token.ts'
import type { Answer, HeaderList, Incoming, IncomingBody } from './exchange.ts'
import type { ProblemWriter } from './problem-writer.ts'
import { wholeBody } from './read.ts'
import type { Who } from './route.ts'

/** How soon a client should ask again for a key whose home is away. */
const AWAY_RETRY_MS = SECOND

type Named = Pick<Identity, 'operation' | 'key'>

/** Tenant and caller of a request that another region forwarded; null for a direct one. */
export function sentHere(
  region: RegionRouter,
  incoming: Incoming,
  { operation, key }: Named,
  problems: ProblemWriter,
  body: IncomingBody | null,
): Who | { readonly answer: Answer } | null {
  const [token, ...others] = incoming.header(REGION_HEADER)
  if (token === undefined) return null
  const { method, target } = incoming
  const [client = null] = incoming.header(CLIENT_HEADER)
  const content = contentOf(incoming, body, client)
  const who = others.length > 0 ? null : region.arrived(token, { method, target, operation, key, content })
  return who ?? { answer: problems.write('not-authorized', { detail: 'No region has sent this request on.' }) }
}

/** The answer of the identity's home, where that is another region; null where it is at home here. */
export async function elsewhere(
  region: RegionRouter,
  incoming: Incoming,
  identity: Identity,
  arrived: boolean,
  problems: ProblemWriter,
): Promise<Answer | null> {
  const home = region.home(identity)
  if (home === region.self) return null
  const away = (detail: string) =>
    problems.write('home-unreachable', { operation: identity.operation, detail, retryAfterMs: AWAY_RETRY_MS })
  // Sent on once more, it could go round in circles: two regions have different lists.
  if (arrived) return away('The regions do not agree about the home of this key.')
  const { method, target } = incoming
  const given = await incoming.body()
  const { body, headers } = raw(incoming, given)
  try {
    const client = incoming.client === undefined ? {} : { client: incoming.client }
    const content = contentOf(incoming, given, incoming.client ?? null)
    return await region.forward({ method, target, headers, body, content, ...client }, identity)
  } catch (error) {
    if (error instanceof AnswerTooLarge) {
      const detail = 'The home of this key has answered, but its answer is too large to be passed on from there.'
      return problems.write('response-not-stored', {
        operation: identity.operation,
        detail,
        extra: { original: { status: error.status } },
      })
    }
    return away(`The region ${home}, which is the home of this key, cannot be reached.`)
  }
}

/** Credentials of the caller; the home may verify them again. */
const CREDENTIALS = ['authorization', 'cookie']

/**
 * What a region vouches for beside the head: body, credentials, and the client that it saw. A body that is still
 * compressed counts by that alone, because its home may have inflated it before it looks.
 */
function contentOf(head: Pick<Incoming, 'header'>, body: IncomingBody | null, client: string | null): string {
  const proofs = CREDENTIALS.map((name) => head.header(name).join('\n'))
  return digestParts([bodyDigest(head, body), client, ...proofs])
}

function bodyDigest(head: Pick<Incoming, 'header'>, body: IncomingBody | null): string | null {
  if (body === null) return null
  const [encoding = 'identity'] = head.header('content-encoding')
  return encoding === 'identity' ? wholeBody(head, body) : encoding
}

/** What the home of a record is asked for; no route can have this name, as it has a space. */
const STATUS = 'operation status'

/** What is needed of a request to send it on, where it has no body. */
export type Head = Pick<Incoming, 'method' | 'target' | 'header' | 'headers'>

/** The caller that reads a record, as the asking region names it; null for a request that came by itself. */
export function lookingHere(region: RegionRouter, head: Head, id: string): Who | 'unproven' | null {
  const [token, ...others] = head.header(REGION_HEADER)
  if (token === undefined) return null
  const { method, target } = head
  const content = contentOf(head, null, null)
  const seen = { method, target, operation: STATUS, key: id, content }
  return (others.length > 0 ? null : region.arrived(token, seen)) ?? 'unproven'
}

/** What the home of a record says of it; null where it is at home here. */
export async function lookElsewhere(
  region: RegionRouter,
  head: Head,
  id: string,
  { tenant, caller }: Who,
  problems: ProblemWriter,
): Promise<Answer | null> {
  const home = region.homeOf(id)
  if (home === region.self) return null
  try {
    const { method, target } = head
    const content = contentOf(head, null, null)
    const request = { method, target, headers: head.headers(), body: new Uint8Array(), content }
    return await region.forward(request, { tenant, caller, operation: STATUS, key: id }, home)
  } catch {
    const detail = `The region ${home}, which is the home of this operation, cannot be reached.`
    return problems.write('home-unreachable', { detail, retryAfterMs: AWAY_RETRY_MS })
  }
}

/** The request as it came, as far as parsers have left it. */
function raw(incoming: Incoming, given: IncomingBody): { readonly body: Uint8Array; readonly headers: HeaderList } {
  const headers = incoming.headers()
  if ('bytes' in given) {
    return {
      body: given.bytes,
      headers: given.inflated === true ? headers.filter(([name]) => name !== 'content-encoding') : headers,
    }
  }
  const type = incoming.header('content-type')[0] ?? ''
  if (!/^[^;]*[/+]json\s*(;|$)/i.test(type)) {
    const why = 'a parser has taken its bytes; keep them, for example with `keepRawBody`'
    throw new OnceError('bad_option', `The request cannot be sent on to its region: ${why}.`)
  }
  return { body: Buffer.from(JSON.stringify(given.parsed)), headers }
}
