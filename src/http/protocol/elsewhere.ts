import { digestParts } from '../../ledger/core/digest.ts'
import { OnceError } from '../../ledger/core/errors.ts'
import type { Identity } from '../../ledger/core/identity.ts'
import { recordIdOf } from '../../ledger/core/identity.ts'
import { SECOND } from '../../ledger/core/limits.ts'
import { final } from '../../ledger/core/verdict.ts'
import type { Granted } from '../../ledger/granted.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { RegionRouter } from '../region/region.ts'
import { AnswerTooLarge } from '../region/send.ts'
import { CLIENT_HEADER, FORMER_HEADER, REGION_HEADER } from '../region/token.ts'
import type { Answer, HeaderList, Incoming, IncomingBody } from './exchange.ts'
import { headerOf } from './exchange.ts'
import type { ProblemWriter } from './problem-writer.ts'
import { wholeBody } from './read.ts'
import type { StoredAnswer } from './record.ts'
import { replayedAnswer } from './record.ts'
import { storedIn } from './replay.ts'
import type { Who } from './route.ts'
import type { RouteRequest } from './running.ts'

/** How soon a client should ask again for a key whose home is away. */
const AWAY_RETRY_MS = SECOND

type Named = Pick<Identity, 'operation' | 'key'>

/** Proves that a former home has handed a key over to the region that asks. No answer of a handler is kept with it. */
const HANDED_OVER_HEADER = 'onceonly-handed-over'

/** Tenant and caller of a request that another region forwarded, and that region; null for a direct one. */
export function sentHere(
  region: RegionRouter,
  incoming: Incoming,
  { operation, key }: Named,
  problems: ProblemWriter,
  body: IncomingBody | null,
): (Who & { readonly from: string }) | { readonly answer: Answer } | null {
  const [token, ...others] = incoming.header(REGION_HEADER)
  if (token === undefined) return null
  const { method, target } = incoming
  const [client = null] = incoming.header(CLIENT_HEADER)
  const content = contentOf(incoming, body, client)
  const who = others.length > 0 ? null : region.arrived(token, { method, target, operation, key, content })
  return who ?? { answer: problems.write('not-authorized', { detail: 'No region has sent this request on.' }) }
}

/** What a region does with a request. */
export type Placed =
  /** It is the home of the identity. */
  | { readonly kind: 'here' }
  /** It was the home before the list changed, and the new one asks: a record answers, or the key is handed over. */
  | { readonly kind: 'hands-over'; readonly to: string }
  | { readonly kind: 'answer'; readonly answer: Answer }

/** A request for an identity, and the region that sent it here, if one did. */
export interface Coming {
  readonly incoming: Incoming
  readonly identity: Identity
  readonly from: string | null
  /** Whether the store of this region has a record of the identity. */
  isKnown(): Promise<boolean>
}

const HERE: Placed = { kind: 'here' }

/** Where a request belongs: the answer of the identity's home, where that is another region. */
export async function place(region: RegionRouter, coming: Coming, problems: ProblemWriter): Promise<Placed> {
  const { incoming, identity, from } = coming
  const id = recordIdOf(identity)
  const home = region.homeOf(id)
  const former = region.formerHomeOf(id)
  const disagree = () => away(problems, identity.operation, 'The regions do not agree about the home of this key.')
  if (home === region.self) {
    // A former home has its records for as long as they are kept, and takes no key any more that it has handed over.
    if (former === null || (await coming.isKnown())) return HERE
    // Each of two regions has the other's list as the one of before.
    if (from !== null && incoming.header(FORMER_HEADER).length > 0) return { kind: 'answer', answer: disagree() }
    const answer = await forwarded(region, coming, former, problems)
    const proof = region.handOverProof({ from: former, to: region.self, id })
    return headerOf(answer.headers, HANDED_OVER_HEADER) === proof ? HERE : { kind: 'answer', answer }
  }
  if (from === null) return { kind: 'answer', answer: await forwarded(region, coming, home, problems) }
  if (former === region.self && from === home) return { kind: 'hands-over', to: home }
  // Sent on once more, it could go round in circles: two regions have different lists.
  return { kind: 'answer', answer: disagree() }
}

function away(problems: ProblemWriter, operation: string, detail: string): Answer {
  return problems.write('home-unreachable', { operation, detail, retryAfterMs: AWAY_RETRY_MS })
}

async function forwarded(
  region: RegionRouter,
  { incoming, identity }: Coming,
  to: string,
  problems: ProblemWriter,
): Promise<Answer> {
  const { method, target } = incoming
  const given = await incoming.body()
  const { body, headers: raws } = raw(incoming, given)
  const asks = region.home(identity) === region.self ? [[FORMER_HEADER, to] as const] : []
  const headers = [...raws.filter(([name]) => name !== FORMER_HEADER), ...asks]
  try {
    const client = incoming.client === undefined ? {} : { client: incoming.client }
    const content = contentOf(incoming, given, incoming.client ?? null)
    return await region.forward({ method, target, headers, body, content, ...client }, identity, to)
  } catch (error) {
    if (error instanceof AnswerTooLarge) {
      const detail = 'The home of this key has answered, but its answer is too large to be passed on from there.'
      return problems.write('response-not-stored', {
        operation: identity.operation,
        detail,
        extra: { original: { status: error.status } },
      })
    }
    return away(problems, identity.operation, `The region ${to}, which is the home of this key, cannot be reached.`)
  }
}

/** The key has no record here: it gets one that says where it is now, and the region there runs the handler. */
export async function handOver(
  begun: Pick<Granted<unknown>, 'settle'>,
  { parts, method }: Pick<RouteRequest<unknown, never>, 'parts' | 'method'>,
  to: string,
  { region, ledger }: { readonly region: RegionRouter; readonly ledger: Pick<Ledger<never>, 'get'> },
  problems: ProblemWriter,
): Promise<Answer> {
  const proof = region.handOverProof({ from: region.self, to, id: recordIdOf(parts) })
  const { status, headers, body } = away(problems, parts.operation, `This key has moved to the region ${to}.`)
  const stored: StoredAnswer = { status, headers: [...headers, [HANDED_OVER_HEADER, proof]], body }
  await begun.settle({ thrown: final(new Error(`Handed over to the region ${to}.`), { answer: stored }) })
  // While its record is still being saved, a process that has the list of before may take the key.
  const saved = await handedOver({ parts, method }, ledger)
  return saved ?? away(problems, parts.operation, 'This key is moving to another region.')
}

/** What the record says, where the key was handed over: it is of no caller, so that none has to be allowed to see it. */
export async function handedOver(
  { parts, method }: Pick<RouteRequest<unknown, never>, 'parts' | 'method'>,
  ledger: Pick<Ledger<never>, 'get'>,
): Promise<Answer | null> {
  const record = (await ledger.get(parts))?.record
  const stored = record === undefined ? null : storedIn(record)
  return stored !== null && isHandedOver(stored) ? replayedAnswer(stored, method) : null
}

export function isHandedOver({ headers }: StoredAnswer): boolean {
  return headerOf(headers, HANDED_OVER_HEADER) !== null
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

/** A question for a record, which is sent to another region. */
interface Question {
  readonly region: RegionRouter
  readonly head: Head
  readonly id: string
  readonly who: Who
  readonly problems: ProblemWriter
}

/** What another region says of a record; null where it is at home here. */
export async function lookElsewhere(question: Question): Promise<Answer | null> {
  const { region, id } = question
  const home = region.homeOf(id)
  return home === region.self ? null : lookAt(question, home)
}

/** What the home of before says of a record that this region does not have; null where there was none. */
export async function lookBack(question: Question): Promise<Answer | null> {
  const { region, id } = question
  const former = region.homeOf(id) === region.self ? region.formerHomeOf(id) : null
  return former === null ? null : lookAt(question, former)
}

async function lookAt({ region, head, id, who, problems }: Question, to: string): Promise<Answer> {
  const { tenant, caller } = who
  try {
    const { method, target } = head
    const content = contentOf(head, null, null)
    const request = { method, target, headers: head.headers(), body: new Uint8Array(), content }
    return await region.forward(request, { tenant, caller, operation: STATUS, key: id }, to)
  } catch {
    const detail = `The region ${to}, which is the home of this operation, cannot be reached.`
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
