import { sha256Hex } from '../../ledger/core/digest.ts'
import { isOnceError } from '../../ledger/core/errors.ts'
import type { BodyFingerprint, BodyInput } from './body.ts'
import { fingerprintBody } from './body.ts'
import type { Incoming, IncomingBody } from './exchange.ts'
import { UnreadableBody } from './exchange.ts'
import type { KeyFound } from './key.ts'
import { parseKey } from './key.ts'
import type { BodyAnswer, BodyQuestion } from './large-body.ts'
import { keyInBody } from './large-body.ts'
import type { Target } from './path.ts'
import { normaliseTarget } from './path.ts'
import type { ProblemDetail, Situation } from './problem.ts'
import type { RouteDefinition } from './route.ts'
import { DEFAULT_KEY_HEADER } from './route.ts'

/** What a request asks for, in one spelling; or what is wrong with it. Nothing is looked up, nothing is claimed. */
export type ReadRequest =
  | { readonly kind: 'keyed'; readonly key: string; readonly operation: string; readonly input: RequestInput }
  /** There is no key, and the route needs none: the rest is not read. */
  | { readonly kind: 'keyless' }
  | RequestProblem

/** What makes it the same request. */
export interface RequestInput {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly conditions: readonly (readonly string[])[]
  readonly body: string
  /** The body in the older forms of the route, by the number of their shape. */
  readonly olderBodies?: Readonly<Record<string, string>>
}

interface RequestProblem {
  readonly kind: 'problem'
  readonly situation: Situation
  readonly detail: ProblemDetail
}

/** Evaluated by the handler, but part of what was asked: a retry must carry the same ones. */
const CONDITIONS = ['if-match', 'if-none-match']

export function conditionsOf(incoming: Incoming): readonly (readonly string[])[] {
  return CONDITIONS.map((name) => incoming.header(name))
}

export async function readRequest<N>(route: RouteDefinition<N>, incoming: Incoming): Promise<ReadRequest> {
  try {
    const head = readHead(route, incoming)
    if ('kind' in head) return head
    // 3. The body, by its meaning. Most frameworks have it already, and waiting for it would cost every request.
    const given = incoming.body()
    const body = given instanceof Promise ? await given : given
    const asked = askElsewhere(route, incoming, body)
    return asked === null ? withBody(route, incoming, head, body) : withAnswer(route, incoming, head, await asked)
  } catch (error) {
    const found = unreadable(error)
    if (found === null) throw error
    return found
  }
}

/** The problem of a request that cannot be read. Null for any other error. */
export function unreadable(error: unknown): RequestProblem | null {
  if (isOnceError(error, 'bad_input')) {
    const { field = 'body' } = error.details
    return withField(problem('invalid-request', error.message.replace(error.next, '').trim()), String(field))
  }
  if (!(error instanceof UnreadableBody)) return null
  return withField(problem(error.status === 413 ? 'content-too-large' : 'invalid-request', error.message), 'body')
}

interface Head {
  /** Null where it is a field of the body. */
  readonly key: string | null
  readonly target: Target
}

function readHead<N>(route: RouteDefinition<N>, incoming: Incoming): Head | ReadRequest {
  const { keyFrom = { header: DEFAULT_KEY_HEADER } } = route
  // 1. The key, before anything is read that a request without one does not need.
  const key: KeyFound | null = 'header' in keyFrom ? parseKey(incoming.header(keyFrom.header.toLowerCase())) : null
  if (key !== null && 'problem' in key) return withoutKey(route, incoming, key)
  // 2. The resource.
  const target = normaliseTarget(incoming.target)
  if ('problem' in target) return problem('invalid-request', target.problem)
  return { key: key === null ? null : key.key, target }
}

function withBody<N>(route: RouteDefinition<N>, incoming: Incoming, head: Head, given: IncomingBody): ReadRequest {
  const { fingerprint: choose, shape = 1, shapes } = route
  const { fingerprint, json } = bodyMeaning(route, incoming, given, { shape, choose })
  const keyField = keyFieldOf(route)
  const key = keyField === null ? null : keyInBody(json, keyField)
  const older = (number: string, chooseOlder: BodyForm['choose']) =>
    bodyMeaning(route, incoming, given, { shape: Number(number), choose: chooseOlder }).fingerprint
  const olderBodies = shapes === undefined ? undefined : mapped(shapes, older)
  return withAnswer(route, incoming, head, { fingerprint, key }, olderBodies)
}

function withAnswer<N>(
  route: RouteDefinition<N>,
  incoming: Incoming,
  head: Head,
  { fingerprint: body, key: inBody }: BodyAnswer,
  olderBodies?: Readonly<Record<string, string>>,
): ReadRequest {
  const key: KeyFound = head.key === null ? (inBody ?? { problem: 'missing' }) : { key: head.key }
  if ('problem' in key) return withoutKey(route, incoming, key)
  const { path, query } = head.target
  const conditions = conditionsOf(incoming)
  const { method } = incoming
  const input = { method, path, query, conditions, body }
  return {
    kind: 'keyed',
    key: key.key,
    operation: route.name ?? resource(method, path),
    input: olderBodies === undefined ? input : { ...input, olderBodies },
  }
}

/** Functions of the route can only be called here. */
function askElsewhere<N>(
  route: RouteDefinition<N>,
  incoming: Incoming,
  body: IncomingBody,
): Promise<BodyAnswer> | null {
  if (incoming.askElsewhere === undefined || !('bytes' in body)) return null
  if (route.fingerprint !== undefined || route.shapes !== undefined) return null
  return incoming.askElsewhere(questionOf(incoming, body, route.shape ?? 1, keyFieldOf(route)))
}

export function questionOf(
  incoming: Pick<Incoming, 'header'>,
  { bytes: body, inflated = false }: Extract<IncomingBody, { readonly bytes: Uint8Array }>,
  shape: number,
  keyField: string | null,
): BodyQuestion {
  const contentType = incoming.header('content-type')[0] ?? null
  const contentEncoding = inflated ? null : (incoming.header('content-encoding')[0] ?? null)
  return { contentType, contentEncoding, body, shape, keyField }
}

function keyFieldOf<N>({ keyFrom }: Pick<RouteDefinition<N>, 'keyFrom'>): string | null {
  return keyFrom !== undefined && 'field' in keyFrom ? keyFrom.field : null
}

function mapped<T>(
  shapes: Readonly<Record<string, T>>,
  form: (number: string, each: T) => string,
): Record<string, string> {
  return Object.fromEntries(Object.entries(shapes).map(([number, each]) => [number, form(number, each)]))
}

/** One way in which the route picks what counts of a body. */
type BodyForm = Pick<BodyInput, 'shape' | 'choose'>

function bodyMeaning<N>(
  route: Pick<RouteDefinition<N>, 'keyFrom'>,
  incoming: Pick<Incoming, 'header'>,
  body: IncomingBody,
  form: BodyForm,
): BodyFingerprint {
  const common: Omit<BodyInput, 'contentType' | 'body'> = { ...form, parse: keyFieldOf(route) !== null }
  if ('bytes' in body) {
    const { contentType, contentEncoding, body: bytes } = questionOf(incoming, body, form.shape, null)
    return fingerprintBody({ ...common, contentType, contentEncoding, body: bytes })
  }
  const contentType = incoming.header('content-type')[0] ?? null
  // Written again from what a parser made of it. JSON keeps its own type, so that it is equal to the same JSON as
  // bytes.
  const type = contentType?.split(';')[0]?.trim().toLowerCase() ?? ''
  const written = Buffer.from(JSON.stringify(body.parsed) ?? '')
  if (type.endsWith('json')) return fingerprintBody({ ...common, contentType, body: written })
  const meaning = fingerprintBody({ ...common, contentType: 'application/json', body: written })
  return { ...meaning, fingerprint: `${type} ${meaning.fingerprint}` }
}

/** The meaning of a body, all of it, whatever a route picks. */
export function wholeBody(incoming: Pick<Incoming, 'header'>, body: IncomingBody): string {
  return bodyMeaning({}, incoming, body, { shape: 1, choose: undefined }).fingerprint
}

const LONGEST_PATH_CHARS = 400

/** A path that would not fit into an identity is named by its digest: it stays a resource of its own. */
function resource(method: string, path: string): string {
  return path.length <= LONGEST_PATH_CHARS ? `${method} ${path}` : `${method} sha256:${sha256Hex(path)}`
}

function problem(situation: Situation, detail: string, operation?: string): RequestProblem {
  return { kind: 'problem', situation, detail: { detail, ...(operation === undefined ? {} : { operation }) } }
}

/** Named like any other field that is wrong, so that one piece of a client's code can show them all. */
function withField(read: RequestProblem, field: string): RequestProblem {
  const errors = [{ field, detail: read.detail.detail }]
  return { ...read, detail: { ...read.detail, extra: { ...read.detail.extra, errors } } }
}

function withoutKey<N>(
  route: RouteDefinition<N>,
  incoming: Incoming,
  key: Extract<KeyFound, { problem: string }>,
): ReadRequest {
  const { keyFrom = { header: DEFAULT_KEY_HEADER } } = route
  const field = 'header' in keyFrom ? keyFrom.header : keyFrom.field
  if (key.problem === 'missing' && (route.key ?? 'required') !== 'required') return { kind: 'keyless' }
  const missing = `${route.name ?? incoming.method} needs the key \`${field}\`.`
  const read =
    key.problem === 'invalid'
      ? problem('idempotency-key-invalid', key.detail, route.name)
      : problem('idempotency-key-missing', missing, route.name)
  return withField(read, field)
}
