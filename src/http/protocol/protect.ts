import { isOnceError, OnceError } from '../../ledger/core/errors.ts'
import type { Identity } from '../../ledger/core/identity.ts'
import { checkIdentityPart } from '../../ledger/core/identity.ts'
import { SECOND } from '../../ledger/core/limits.ts'
import type { LedgerRecord } from '../../ledger/core/record.ts'
import type { EffectContext, TransactionContext } from '../../ledger/effect-context.ts'
import type { Begun as BegunCommand } from '../../ledger/granted.ts'
import type { Breaker } from '../../ledger/guard/breaker.ts'
import { createBreaker, isStoreDown } from '../../ledger/guard/breaker.ts'
import { ANY_CALLER, GUARD_PREFIX } from '../../ledger/guard/content-key.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Execution } from '../../ledger/present.ts'
import type { Leaving } from '../../ledger/twins.ts'
import { createListeners } from '../../runtime/listeners.ts'
import type { Awaitable } from '../../runtime/runtime.ts'
import type { RegionRouter } from '../region/region.ts'
import {
  aboutContent,
  contentDefinition,
  errorOfContent,
  opensWithoutStore,
  readContent,
  withinTime,
} from './content.ts'
import type { ContentKey } from './content-options.ts'
import { declareRoute } from './declare.ts'
import { createEarly, type Early } from './early.ts'
import { handedOver, handOver, place, sentHere } from './elsewhere.ts'
import type { Answer, Incoming } from './exchange.ts'
import { hungUp } from './leaving.ts'
import { refuseWho } from './options.ts'
import { PREFERENCE_APPLIED, preferredWaitMs } from './prefer.ts'
import type { ProblemOptions, ProblemWriter } from './problem-writer.ts'
import { createProblemWriter } from './problem-writer.ts'
import type { ReadRequest, RequestProblem } from './read.ts'
import { createReader } from './read.ts'
import type { StoredAnswer } from './record.ts'
import { credentialChanged, recordedAnswer, storedIn, unbound } from './replay.ts'
import type { AnswerBinding, RouteDefinition, Who } from './route.ts'
import { checkRoute, MAX_ANSWER_BYTES } from './route.ts'
import type { Parts, Running, RunRules, Way } from './running.ts'
import { RequestOptions, RouteRequest, RunningRoute } from './running.ts'
import { isThenable } from './thenable.ts'

/** The signature of a method, so that `who` may take a request that your own middleware has added to. */
export type FindWho<N> = { find(request: N): Who | Promise<Who> }['find']

export interface HttpOptions<N, Tx> extends ProblemOptions {
  /** The ledger that records requests and responses. */
  readonly ledger: Ledger<Tx>
  /**
   * From the authenticated request; stable across token refresh. For one shared caller write `caller: 'shared'`. Where your
   * authentication has added to the request, name its type: `(request: Request & { user: User }) => …`.
   */
  readonly who: FindWho<N>
  /**
   * Where there are several: a key is accepted by its home alone, and a request for another region is sent there.
   * @default one region
   */
  readonly region?: RegionRouter
  /** Gets errors that no framework sees; `console.error` by default. @default console.error */
  readonly onError?: (error: unknown) => void
}

export type BegunRequest<Tx> =
  /** No key, and none needed: the handler runs without protection. */
  (
    | { readonly kind: 'unprotected' }
    /** The protocol answers: a replay, or a problem document. */
    | {
        readonly kind: 'answer'
        readonly answer: Answer
        /** Why the ledger refused, where it did: for adapters that know another way. */
        readonly refused?: string
      }
    /** The handler runs. Its answer is handed to `finish` before its last byte is sent, a cut one to `fail`. */
    | Running<Tx>
  ) & {
    /** The key that was made of the content, where that is how the request was treated. */
    readonly content?: string
  }

/** One protected route: the one algorithm, whatever the framework. */
export interface Route<N, Tx> {
  readonly definition: RouteDefinition<N>
  /** Larger answers are passed on, but not kept. */
  readonly maxAnswerBytes: number
  /** A transaction's answer must not leave before its commit, so it is not streamed. */
  readonly buffered: boolean
  /** A promise only where something has to be waited for: a body, the caller, a store. */
  begin(incoming: Incoming, request: N, signal?: AbortSignal | Leaving): Awaitable<BegunRequest<Tx>>
  /** For adapters without a framework that would answer for a handler that threw: reports it, and answers 500. */
  fault(error: unknown): Answer
}

type BegunOperation<Tx> = BegunCommand<EffectContext | TransactionContext<Tx>>

/**
 * One protected route, for authors of adapters: `begin` reads the request and claims its key.
 *
 * @param contentWho where callers that share a key are distinguished by their content
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createRoute } from 'onceonly/http'
 * import { memoryStore } from 'onceonly/memory'
 *
 * const ledger = createLedger({ store: memoryStore() })
 * const who = (request: { user: string }) => ({ tenant: 'acme', caller: request.user })
 * export const route = createRoute({ ledger, who }, { name: 'order.place', effect: 'external' })
 * ```
 */
export function createRoute<N, Tx>(
  options: HttpOptions<N, Tx>,
  definition: RouteDefinition<N>,
  contentWho: HttpOptions<N, Tx>['who'] = options.who,
): Route<N, Tx> {
  checkRoute(definition)
  const profile = definition.profile ?? options.profile
  const problems = createProblemWriter({ ...options, ...(profile === undefined ? {} : { profile }) })
  if (definition.respondAsync === true && problems.profile.name === 'stripe') {
    const why = "is not offered in the profile 'stripe', which has no answer for a request that is being processed"
    throw new OnceError('bad_option', `Route option \`respondAsync\` ${why}.`, { details: { option: 'respondAsync' } })
  }
  const { keep = 'response', keepHeaders = [], whileRunning, content } = definition
  const keeping = { keep, headers: new Set(keepHeaders.map((each) => each.toLowerCase())) }
  const reader = createReader(definition)
  const byKey: Way<N, Tx> = { ...declared(definition), prefix: '', who: options.who, shared: false, breaker: null }
  const byContent = content === undefined ? null : contentWay(content)

  function declared(of: RouteDefinition<N>) {
    return { definition: of, operation: declareRoute(options.ledger, of) }
  }

  function contentWay({ scope = 'tenant', decideMs, ...rest }: ContentKey): Way<N, Tx> {
    return {
      ...declared(contentDefinition(definition, rest)),
      prefix: GUARD_PREFIX,
      who: contentWho,
      shared: scope === 'tenant',
      decideMs,
      breaker: decideMs === undefined ? null : createBreaker(),
    }
  }

  function begin(given: Incoming, request: N, signal?: AbortSignal | Leaving): Awaitable<BegunRequest<Tx>> {
    const incoming = options.region === undefined ? given : readTwice(given)
    const call = new RouteRequest(incoming, request, signal, byKey)
    // 1. The request itself: what is wrong with it is found before anything is claimed.
    const read = reader.read(incoming)
    return read instanceof Promise ? read.then((found) => under(call, found)) : under(call, read)
  }

  /** 2. The caller, by the authentication of this request; or by the token of the region that forwarded it. */
  function under(call: RouteRequest<N, Tx>, read: ReadRequest): Awaitable<BegunRequest<Tx>> {
    if (read.kind === 'problem') return refused(read, call.incoming)
    if (read.kind === 'keyless') return withoutKey(call)
    call.read = read
    call.operation = read.operation
    if (options.region !== undefined) return underRegion(options.region, call)
    const who = call.way.who(call.request)
    return isThenable(who) ? Promise.resolve(who).then((found) => claimed(call, found)) : claimed(call, who)
  }

  function refused(read: RequestProblem, { target }: Incoming): BegunRequest<Tx> {
    return { kind: 'answer', answer: problems.write(read.situation, { ...read.detail, instance: target }) }
  }

  async function underRegion(region: RegionRouter, call: RouteRequest<N, Tx>): Promise<BegunRequest<Tx>> {
    const { way, read, incoming } = call
    const named = { operation: way.prefix + read.operation, key: read.key }
    const sent = sentHere(region, incoming, named, problems, await incoming.body())
    if (sent !== null && 'answer' in sent) return { kind: 'answer', answer: sent.answer }
    const who = sent ?? (await way.who(call.request))
    const identity = partsOf(call, who)
    const isKnown = async () => (await options.ledger.get(identity)) !== null
    call.parts = identity
    const coming = { incoming, identity, from: sent?.from ?? null, isKnown }
    // A store that is down refuses here as it would refuse the claim.
    const placed = await place(region, coming, problems).catch(refusedBy)
    if (placed.kind === 'answered') return granted(call, placed)
    if (placed.kind === 'answer') return placed
    if (placed.kind === 'hands-over') call.handsOverTo = placed.to
    return claimed(call, who)
  }

  function partsOf({ way, read, incoming }: RouteRequest<N, Tx>, who: Who): Parts {
    if (typeof who !== 'object' || who === null) return refuseWho(who, incoming)
    const { tenant, caller } = who
    // One caller stands for all of them in the record, where no check would see what `who` returned.
    if (way.shared) checkIdentityPart('caller', caller)
    const { prefix } = way
    const operation = prefix === '' ? read.operation : prefix + read.operation
    return { tenant, caller: way.shared ? ANY_CALLER : caller, operation, key: read.key }
  }

  /** Under its content, where the route has one. A store that is down does not stop what may run without it. */
  async function withoutKey(call: RouteRequest<N, Tx>): Promise<BegunRequest<Tx>> {
    if (byContent === null || content === undefined) return { kind: 'unprotected' }
    const read = await readContent(definition, content, call.incoming, (error) => report(options, error))
    if (read.kind === 'problem') return refused(read, call.incoming)
    call.way = byContent
    call.route = byContent.definition
    call.keyless = true
    const begun = await under(call, read)
    const opens = opensWithoutStore(definition)
    if (begun.kind === 'answer' && isStoreDown(begun.refused ?? null) && opens)
      return { kind: 'unprotected', content: read.key }
    const running = begun.kind === 'run' && opens ? withinTime(begun, content.decideMs) : begun
    return Object.assign(running, { content: read.key })
  }

  /** 3. The claim. A client that hangs up before its handler began gives it back; afterwards the outcome is awaited. */
  function claimed(call: RouteRequest<N, Tx>, who: Who): Awaitable<BegunRequest<Tx>> {
    const { way } = call
    const { breaker, decideMs } = way
    call.parts = partsOf(call, who)
    const asks = breaker === null || breaker.allows()
    if (asks) call.breaker = breaker
    if (definition.respondAsync === true) call.waitMs = preferredWaitMs(call.incoming.header('prefer'))
    const given = new RequestOptions(call, decideMs === undefined || asks ? decideMs : 0)
    try {
      let begun: Awaitable<BegunOperation<Tx>>
      try {
        begun = way.operation.begin(call.parts, null, given)
      } catch (error) {
        begun = refusedBy(error)
      }
      if (!(begun instanceof Promise)) return granted(call, begun)
      const found = begun.then(
        (each) => granted(call, each),
        (error: unknown) => granted(call, refusedBy(error)),
      )
      return found.catch((error: unknown) => left(call, error))
    } catch (error) {
      return left(call, error)
    }
  }

  function left({ signal }: RouteRequest<N, Tx>, error: unknown): BegunRequest<Tx> {
    if (signal?.aborted !== true) throw error
    return { kind: 'answer', answer: hungUp(problems) }
  }

  /** 4. The handler runs, and its answer settles the claim; or the record answers. */
  function granted(call: RouteRequest<N, Tx>, begun: BegunOperation<Tx>): Awaitable<BegunRequest<Tx>> {
    const { way, parts, waitMs, breaker, keyless } = call
    if (breaker !== null) learn(breaker, begun.kind === 'granted' ? null : begun.execution)
    if (begun.kind === 'granted') {
      const { ledger, region } = options
      if (call.handsOverTo !== null && region !== undefined)
        return handOver(begun, call, call.handsOverTo, { region, ledger }, problems).then(answerOf)
      const early = waitMs === null ? null : (over: Promise<unknown>) => earlyFor(way, parts, waitMs, over)
      return new RunningRoute(begun, rules, call, early)
    }
    const execution = begun.execution as Execution<StoredAnswer>
    const ended = keyless ? aboutContent(execution) : execution
    if (ended.kind === 'refused') return refusedAnswer(call, ended.error)
    // What came again is known already, or has no bytes to compare.
    if (ended.kind === 'replayed' && call.read.bytes !== null) reader.remember(call.read, call.incoming)
    const answer = recordedAnswer(problems, ended, call)
    return answer instanceof Promise ? answer.then(answerOf) : { kind: 'answer', answer }
  }

  async function refusedAnswer(call: RouteRequest<N, Tx>, error: OnceError): Promise<BegunRequest<Tx>> {
    const { parts, waitMs, operation: name, request, target, route } = call
    const answer =
      (error.code === 'not_authorized' && options.region !== undefined
        ? await handedOver(call, options.ledger)
        : null) ??
      (definition.bound === undefined ? null : await changed(definition.bound, parts, error, request, target)) ??
      // A retry that prefers not to wait, after it has waited as the route says.
      (waitMs !== null && error.code === 'in_progress' ? acceptedAnswer(problems, error, name) : null) ??
      problems.refuse(error, { name, whileRunning: route.whileRunning, target })
    return { kind: 'answer', answer, refused: error.code }
  }

  function earlyFor(way: Way<N, Tx>, identity: Identity, waitMs: number, over: Promise<unknown>): Early {
    const { ledger } = options
    const transactional = definition.effect === 'transaction'
    const name = identity.operation.slice(way.prefix.length)
    return createEarly(waitMs, { ledger, identity, transactional, over }, (id) => {
      const error = inProgress(name, id)
      return acceptedAnswer(problems, way === byContent ? errorOfContent(error) : error, name)
    })
  }

  /** A caller that may not see the record does not learn either whether it was for the same request. */
  async function changed(
    bound: AnswerBinding<N>,
    parts: Parts,
    { code }: OnceError,
    request: N,
    target: string,
  ): Promise<Answer | null> {
    if (code !== 'key_reused') return null
    const record = (await options.ledger.get(parts))?.record
    if (record === undefined) return null
    // Without a response its owner is not decided yet: the same answer as for the same request.
    const undecided = undecidedIn(parts.operation, record)
    if (undecided !== null) return problems.refuse(undecided, { name: parts.operation, whileRunning, target })
    const stored = storedIn(record)
    if (stored === null || unbound(bound, stored, request) !== null) return null
    const { situation, detail } = credentialChanged(parts.operation)
    return problems.write(situation, { instance: target, ...detail })
  }

  const rules: RunRules<N> = {
    finality: definition.finality ?? problems.profile.finality,
    keep: keeping,
    transactional: definition.effect === 'transaction',
    undone: (error, { operation }) => undoneAnswer(options, problems, { name: operation, whileRunning }, error),
    recorded: (execution, asked) => recordedAnswer(problems, execution as Execution<StoredAnswer>, asked),
  }

  return {
    definition,
    maxAnswerBytes: definition.maxAnswerBytes ?? MAX_ANSWER_BYTES,
    buffered: definition.effect === 'transaction',
    begin,
    fault: (error) => reportFault(options, problems, error),
  }
}

/** Errors of the ledger are answers of the protocol; everything else is the application's. */
function refusedBy(error: unknown): Extract<BegunCommand<never>, { kind: 'answered' }> {
  if (isOnceError(error)) return { kind: 'answered', execution: { kind: 'refused', error } }
  throw error
}

const answerOf = (answer: Answer) => ({ kind: 'answer', answer }) as const

/** How soon a caller should ask what became of its operation. */
const ACCEPTED_RETRY_MS = SECOND

/** As the ledger refuses a retry while the first attempt runs. */
function inProgress(operation: string, id: string): OnceError {
  const options = { retryAfterMs: ACCEPTED_RETRY_MS, details: { id } }
  return new OnceError('in_progress', `${operation} under this key is still running.`, options)
}

function undecidedIn(operation: string, { state, id }: LedgerRecord): OnceError | null {
  if (state === 'in_progress') return inProgress(operation, id)
  if (state !== 'unknown') return null
  return new OnceError('outcome_unknown', `The outcome of ${operation} under this key is unknown.`, {
    details: { id },
  })
}

function acceptedAnswer(problems: ProblemWriter, error: OnceError, name: string): Answer {
  const answer = problems.refuse(error, { name, whileRunning: 'accept' })
  return { ...answer, headers: [...answer.headers, PREFERENCE_APPLIED] }
}

/** Whether the store has decided, whatever it was. */
function learn(breaker: Breaker, ended: Execution<unknown> | null): void {
  if (isStoreDown(ended?.kind === 'refused' ? ended.error.code : null)) breaker.failed()
  else breaker.worked()
}

/** A request that is sent on needs its body once more. */
function readTwice(incoming: Incoming): Incoming {
  const { method, target, client } = incoming
  let body: ReturnType<Incoming['body']> | null = null
  return {
    method,
    target,
    client,
    header: (name) => incoming.header(name),
    headers: () => incoming.headers(),
    body: () => (body ??= incoming.body()),
    askElsewhere: (question) => incoming.askElsewhere?.(question) ?? null,
  }
}

/**
 * The handler has answered, but its transaction did not commit: nothing happened, and the key is still free. Where other code
 * ended the transaction, what it wrote may stand: then the outcome is unknown, and the operator has to know.
 */
function undoneAnswer(
  options: Reporting,
  problems: ProblemWriter,
  route: Parameters<ProblemWriter['refuse']>[1],
  error: unknown,
): Answer {
  if (isOnceError(error, 'transaction_lost')) report(options, error)
  try {
    if (isOnceError(error)) return problems.refuse(error, route)
  } catch {
    // Not one of the errors that the protocol has words for.
  }
  const detail = { operation: route.name, detail: 'The request was undone, because its transaction did not commit.' }
  report(options, error)
  return problems.write('not-committed', detail)
}

type Reporting = Pick<HttpOptions<never, never>, 'onError'>

function report({ onError = (each) => console.error(each) }: Reporting, error: unknown): void {
  createListeners(onError).emit(error)
}

export function reportFault(options: Reporting, problems: ProblemWriter, error: unknown): Answer {
  report(options, error)
  return problems.write('internal-error', { detail: 'The request could not be carried out.' })
}
