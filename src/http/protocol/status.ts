import { decodeValue } from '../../ledger/core/codec.ts'
import { isOnceError, OnceError } from '../../ledger/core/errors.ts'
import type { Identity } from '../../ledger/core/identity.ts'
import { SECOND } from '../../ledger/core/limits.ts'
import type { LedgerRecord } from '../../ledger/core/record.ts'
import type { Failure } from '../../ledger/core/verdict.ts'
import { ANY_CALLER, GUARD_PREFIX } from '../../ledger/guard/content-key.ts'
import type { RegionRouter } from '../region/region.ts'
import { routesFor } from './declare.ts'
import { type Uncommitted, uncommittedOf } from './early.ts'
import type { Head } from './elsewhere.ts'
import { isHandedOver, lookBack, lookElsewhere, lookingHere } from './elsewhere.ts'
import type { Answer, HeaderList } from './exchange.ts'
import { headerOf, headersByName, joined } from './exchange.ts'
import type { ProblemDetail, Situation } from './problem.ts'
import { retryAfterHeader } from './problem.ts'
import type { ProblemWriter } from './problem-writer.ts'
import { createProblemWriter } from './problem-writer.ts'
import type { HttpOptions } from './protect.ts'
import { reportFault } from './protect.ts'
import { checkOptions } from './protect-options.ts'
import type { Asked, Reply } from './replay.ts'
import { replyOfFailure, replyOfSuccess, storedIn, unbound } from './replay.ts'
import type { RouteDefinition, Who } from './route.ts'

export interface StatusOptions<N, Tx> extends HttpOptions<N, Tx> {
  /**
   * Called beside the route's own. Needed when a route without a name has one, because its records do not say which route they
   * belong to.
   * @default the route's own
   */
  readonly authorize?: RouteDefinition<N>['authorize']
  /** Holds for every record, also of routes that are gone. @default the route's own */
  readonly bound?: RouteDefinition<N>['bound']
}

/** `GET /operations/{id}`: the outcome of a request, for its caller. */
export interface OperationStatus<N> {
  /**
   * @param target the path of the request, which ends with the operation's id
   * @param head the request once more, as it came; where there are regions, it is sent to the home of the record
   */
  answer(target: string, request: N, head?: Head): Promise<Answer>
  /** For adapters without a framework that would answer for an error. */
  fault(error: unknown): Answer
}

/** Its own, and those of adapters: a program may give the status the options of its routes. */
const statusNames = ['authorize', 'bound', 'maxBodyBytes', 'reserveMs']

/** How soon a client should look again at an operation that runs. */
const LOOK_AGAIN_MS = 2 * SECOND

/** What an answer of the protocol, or of the handler, is inside of the status document. */
interface Shown {
  readonly result?: Json
  readonly problem?: Json
  readonly retryAfterMs?: number
}

/** JSON as text, so that a stored body keeps every digit of its numbers. */
type Json = string

/**
 * Shows callers what became of their requests, for servers without an adapter; adapters have `operationStatus`.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createStatus } from 'onceonly/http'
 * import { memoryStore } from 'onceonly/memory'
 *
 * const ledger = createLedger({ store: memoryStore() })
 * const status = createStatus({ ledger, who: (user: string) => ({ tenant: 'acme', caller: user }) })
 * export const answer = await status.answer('/operations/abc', 'ann')
 * ```
 */
export function createStatus<N, Tx>(options: StatusOptions<N, Tx>): OperationStatus<N> {
  checkOptions(options, statusNames, 'operationStatus')
  const { region } = options
  return createStatusBy(options, async (look) => {
    const { id, request, head } = look
    const arrived = region === undefined || head === undefined ? null : lookingHere(region, head, id)
    if (arrived === 'unproven') return null
    const who = arrived ?? (await options.who(request))
    const found = await recordOf(region, look, who, arrived !== null)
    return found === null || 'answer' in found || isOf(found.identity, who) ? found : null
  })
}

/**
 * The record of this region, or what another one says of it: its home, or the home of before.
 *
 * @param isSent another region has sent the question here, so that it is not sent to the home again
 */
export async function recordOf(
  region: RegionRouter | undefined,
  { id, head, problems, record }: Pick<Look<unknown>, 'id' | 'head' | 'problems' | 'record'>,
  who: Who,
  isSent: boolean,
): Promise<LedgerRecord | Uncommitted | { readonly answer: Answer } | null> {
  const ask = region !== undefined && head !== undefined ? { region, head, id, who, problems } : null
  const elsewhere = ask === null || isSent ? null : await lookElsewhere(ask)
  if (elsewhere !== null) return { answer: elsewhere }
  const found = await record()
  // What a record says that was handed over is for regions alone.
  const stored = found === null ? null : storedIn(found)
  if (found !== null && (stored === null || !isHandedOver(stored))) return found
  const before = ask === null ? null : await lookBack(ask)
  return before === null ? null : { answer: before }
}

export function isOf(identity: Identity, { tenant, caller }: Who): boolean {
  const shared = identity.caller === ANY_CALLER && identity.operation.startsWith(GUARD_PREFIX)
  return identity.tenant === tenant && (identity.caller === caller || shared)
}

/** As its route is named: a caller does not know that requests without a key are an operation of their own. */
function routeNameOf({ operation }: Identity): string {
  return operation.startsWith(GUARD_PREFIX) ? operation.slice(GUARD_PREFIX.length) : operation
}

/** A request for the status of an operation. */
export interface Look<N> {
  readonly id: string
  readonly request: N
  readonly head: Head | undefined
  readonly problems: ProblemWriter
  /** Asks the store of this region. */
  record(): Promise<LedgerRecord | Uncommitted | null>
}

/** The record, for callers that may see it; or what another region says of it. Null for all others. */
export type FindRecord<N> = (look: Look<N>) => Promise<LedgerRecord | Uncommitted | { readonly answer: Answer } | null>

export function createStatusBy<N, Tx>(
  options: Omit<StatusOptions<N, Tx>, 'who' | 'region'>,
  findRecord: FindRecord<N>,
): OperationStatus<N> {
  const { ledger } = options
  const problems = createProblemWriter(options)

  const nothing = () => problems.write('operation-not-found', { detail: 'There is no operation of that id for you.' })

  async function answer(target: string, request: N, head?: Head): Promise<Answer> {
    try {
      return await look(target, request, head)
    } catch (error) {
      if (!isOnceError(error)) throw error
      return problems.refuse(error, { name: 'operation-status', whileRunning: undefined })
    }
  }

  async function look(target: string, request: N, head: Head | undefined): Promise<Answer> {
    const id = /([0-9a-f]{32})\/?(?:\?.*)?$/.exec(target)?.[1]
    // A caller that may not see it learns nothing, not even that it exists.
    if (id === undefined) return nothing()
    const find = async () => uncommittedOf(ledger, id) ?? (await ledger.find(id))?.record ?? null
    const record = await findRecord({ id, request, head, problems, record: find })
    if (record === null) return nothing()
    if ('answer' in record) return record.answer
    const { identity } = record
    const route = routeOf(record)
    if (route === null || !(await allowed(route, record, request))) return nothing()
    const { bound = route.bound } = options
    const stored = bound === undefined ? null : storedIn(record)
    if (bound !== undefined && stored !== null && unbound(bound, stored, request) === null) return nothing()
    const asked = {
      route: bound === undefined ? route : { ...route, bound },
      operation: routeNameOf(identity),
      method: 'GET',
      request,
    }
    const shown = await show(problems, record, asked)
    const members: [string, Json][] = [
      ['id', JSON.stringify(id)],
      ['operation', JSON.stringify(asked.operation)],
      ['status', JSON.stringify(record.state)],
      ...(shown.result === undefined ? [] : [['result', shown.result] satisfies [string, Json]]),
      ...(shown.problem === undefined ? [] : [['problem', shown.problem] satisfies [string, Json]]),
      ['links', JSON.stringify({ self: problems.link(id) })],
    ]
    return document(members, retryAfterHeader(shown.retryAfterMs))
  }

  /** Of records without a named route any unnamed one may be the maker, so that none of them may have a secret rule. */
  function routeOf(record: Pick<LedgerRecord, 'identity'>): RouteDefinition<N> | null {
    const routes = routesFor(ledger, record.identity.operation) as readonly RouteDefinition<N>[]
    const [route] = routes
    if (route === undefined || route.name !== undefined) return route ?? null
    if (options.authorize === undefined && routes.some(({ authorize }) => authorize !== undefined)) {
      throw new OnceError('bad_option', 'operationStatus needs `authorize`: a route without a name has one.')
    }
    return { effect: route.effect, ...(routes.length === 1 ? route : {}) }
  }

  async function allowed(route: RouteDefinition<N>, record: LedgerRecord | Uncommitted, request: N): Promise<boolean> {
    const { identity, pointer } = record
    for (const authorize of [options.authorize, route.authorize]) {
      if (authorize !== undefined && !(await authorize(request, { identity, pointer }))) return false
    }
    return true
  }

  return { answer, fault: (error) => reportFault(options, problems, error) }
}

async function show<N>(problems: ProblemWriter, record: LedgerRecord | Uncommitted, asked: Asked<N>): Promise<Shown> {
  const { operation } = asked
  const problem = (situation: Situation, detail: ProblemDetail) => ({
    problem: textOf(problems.write(situation, detail)),
  })
  const shown = (reply: Reply) =>
    reply.kind === 'answer' ? { result: resultOf(reply.answer) } : problem(reply.situation, reply.detail)
  switch (record.state) {
    case 'succeeded': {
      const { kept, data } = record.outcome
      const stored = kept === 'response' && data !== null ? decodeValue(data) : undefined
      return shown(await replyOfSuccess(stored, asked))
    }
    case 'failed_terminal': {
      const { answer, ...failure } = failureOf(record.outcome.data)
      return shown(await replyOfFailure(answer, failure, asked))
    }
    case 'failed_retryable':
      return problem('retry-later', { operation, detail: 'The request failed and may be retried.' })
    case 'unknown':
      return problem('outcome-unknown', { operation, detail: 'It is unknown whether it took effect.' })
    case 'in_progress':
      return { retryAfterMs: LOOK_AGAIN_MS }
    case 'vacant':
      return {}
  }
}

function failureOf(data: string | null): Partial<Failure> & { readonly answer?: unknown } {
  return data === null ? {} : (decodeValue(data) as Failure & { readonly answer?: unknown })
}

const decoder = new TextDecoder()

function textOf({ body }: Answer): string {
  return decoder.decode(body)
}

/** The answer as a member of a document: JSON as JSON, text as text, anything else in base64. */
function resultOf(answer: Answer): Json {
  const names = headersByName(answer.headers).filter(([name]) => name !== 'idempotent-replayed')
  const headers = Object.fromEntries(names.map(([name, value]) => [name, joined(value)]))
  const head = `"status":${answer.status},"headers":${JSON.stringify(headers)}`
  const type = headerOf(answer.headers, 'content-type') ?? ''
  if (answer.body.length === 0) return `{${head}}`
  if (/^[^;]*[/+]json\s*(;|$)/i.test(type) && isJson(textOf(answer))) return `{${head},"body":${textOf(answer)}}`
  if (type.startsWith('text/')) return `{${head},"body":${JSON.stringify(textOf(answer))}}`
  return `{${head},"bodyBase64":${JSON.stringify(Buffer.from(answer.body).toString('base64'))}}`
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function document(members: readonly (readonly [string, Json])[], headers: HeaderList): Answer {
  const text = `{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`
  const body = new TextEncoder().encode(text)
  const type = ['content-type', 'application/json'] as const
  const length = ['content-length', String(body.length)] as const
  // What it says is the caller's own, and changes.
  return { status: 200, headers: [type, length, ['cache-control', 'no-store'], ...headers], body }
}
