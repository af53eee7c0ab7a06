import { fingerprintOf, lengthPrefixed, sha256Hex } from '../../ledger/core/digest.ts'
import { isOnceError } from '../../ledger/core/errors.ts'
import type { Awaitable } from '../../runtime/runtime.ts'
import type { BodyInput, BodyMeaning } from './body.ts'
import { readMeaning } from './body.ts'
import { bodyRefusal } from './body-refusal.ts'
import type { Incoming, IncomingBody } from './exchange.ts'
import { UnreadableBody } from './exchange.ts'
import type { KeyFound } from './key.ts'
import { parseKey } from './key.ts'
import type { BodyQuestion } from './large-body.ts'
import { keyInBody } from './large-body.ts'
import type { Target } from './path.ts'
import { normaliseTarget } from './path.ts'
import type { ProblemDetail, Situation } from './problem.ts'
import type { KeyedRequest } from './readings.ts'
import { createReadings, Keyed } from './readings.ts'
import type { RouteDefinition } from './route.ts'
import { DEFAULT_KEY_HEADER } from './route.ts'

/** What a request asks for, in one spelling; or what is wrong with it. Nothing is looked up, nothing is claimed. */
export type ReadRequest =
  | KeyedRequest
  /** There is no key, and the route needs none: the rest is not read. */
  | { readonly kind: 'keyless' }
  | RequestProblem

export interface RequestProblem {
  readonly kind: 'problem'
  readonly situation: Situation
  readonly detail: ProblemDetail
}

/** Reads the requests of one route. */
export interface Reader {
  /** A promise only where something has to be waited for. */
  read(incoming: Incoming): Awaitable<ReadRequest>
  /** The same request will probably come again: the same bytes then need not be read again. */
  remember(read: KeyedRequest, incoming: Incoming): void
}

export function createReader<N>(route: RouteDefinition<N>): Reader {
  const { keyFrom = { header: DEFAULT_KEY_HEADER }, shape = 1, shapes = {} } = route
  const header = 'header' in keyFrom ? keyFrom.header.toLowerCase() : null
  const keyField = 'field' in keyFrom ? keyFrom.field : null
  const current: BodyForm = { shape, choose: route.fingerprint, parse: keyField !== null }
  const older = Object.entries(shapes).map(([number, choose]) => ({ ...current, shape: Number(number), choose }))
  /** Functions of the route can only be called in this thread, and may not always return the same. */
  const isPortable = route.fingerprint === undefined && route.shapes === undefined
  const remembers = isPortable && header !== null

  const readings = createReadings()

  function read(incoming: Incoming): Awaitable<ReadRequest> {
    try {
      // 1. The key, before anything is read that a request without one does not need.
      const key = header === null ? null : parseKey(incoming.header(header))
      if (key !== null && 'problem' in key) return withoutKey(route, incoming, key)
      // 2. The resource.
      const target = normaliseTarget(incoming.target)
      if ('problem' in target) return problem('invalid-request', target.problem)
      // 3. The body, by its meaning. Most frameworks have it already, and waiting for it would cost every request.
      const body = incoming.body()
      const found =
        body instanceof Promise
          ? body.then((given) => withBody(incoming, key, target, given))
          : withBody(incoming, key, target, body)
      return found instanceof Promise ? found.catch(asProblem) : found
    } catch (error) {
      return asProblem(error)
    }
  }

  function withBody(
    incoming: Incoming,
    key: KeyFound | null,
    target: Target,
    body: IncomingBody,
  ): Awaitable<ReadRequest> {
    const bytes = remembers && 'bytes' in body && body.inflated !== true ? body.bytes : null
    const known = bytes === null || key === null || 'problem' in key ? null : readings.find(key.key, incoming, bytes)
    if (known !== null) return known
    const asked =
      isPortable && incoming.askElsewhere !== undefined && 'bytes' in body
        ? incoming.askElsewhere(questionOf(incoming, body, shape, keyField))
        : null
    if (asked !== null)
      return asked.then((answer) => keyed(incoming, target, key ?? answer.key, [answer.meaning], null))
    const { meaning, json } = bodyMeaning(incoming, body, current)
    const found = key ?? (keyField === null ? null : keyInBody(json, keyField))
    if (older.length === 0) return keyed(incoming, target, found, [meaning], bytes)
    const bodies = older.map((form) => bodyMeaning(incoming, body, form).meaning)
    return keyed(incoming, target, found, [meaning, ...bodies], null)
  }

  /** @param bodies in the current form, then in the older ones */
  function keyed(
    incoming: Incoming,
    { path, query }: Target,
    key: KeyFound | null,
    bodies: readonly [string, ...string[]],
    bytes: Uint8Array | null,
  ): ReadRequest {
    if (key === null || 'problem' in key) return withoutKey(route, incoming, key ?? { problem: 'missing' })
    const { method } = incoming
    const match = incoming.header('if-match')
    const noneMatch = incoming.header('if-none-match')
    const isConditional = match.length + noneMatch.length > 0
    const conditions = isConditional ? [String(match.length), ...match, ...noneMatch] : UNCONDITIONAL
    const formOf = (body: string, number: number) =>
      fingerprintOf(lengthPrefixed([body, method, path, query].concat(conditions)), number)
    const fingerprints: [string, ...string[]] = [formOf(bodies[0], shape)]
    for (let at = 1; at < bodies.length; at++)
      fingerprints.push(formOf(bodies[at] as string, older[at - 1]?.shape ?? 0))
    const operation = route.name ?? resource(method, path)
    return new Keyed(key.key, operation, fingerprints, bytes)
  }

  return { read, remember: readings.keep }
}

/** As a request with no `If-Match`: their number comes before them. */
const UNCONDITIONAL: string[] = ['0']

export function asProblem(error: unknown): RequestProblem {
  const found = unreadable(error)
  if (found === null) throw error
  return found
}

/** The problem of a request that cannot be read. Null for any other error. */
function unreadable(error: unknown): RequestProblem | null {
  if (isOnceError(error, 'bad_input')) {
    const { field = 'body' } = error.details
    return withField(problem('invalid-request', error.message.replace(error.next, '').trim()), String(field))
  }
  if (!(error instanceof UnreadableBody)) return null
  return withField(problem(error.status === 413 ? 'content-too-large' : 'invalid-request', error.message), 'body')
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

/** One way in which the route picks what counts of a body. */
type BodyForm = Pick<BodyInput, 'shape' | 'choose' | 'parse'>

function bodyMeaning(incoming: Pick<Incoming, 'header'>, body: IncomingBody, form: BodyForm): BodyMeaning {
  const contentType = incoming.header('content-type')[0] ?? null
  if ('bytes' in body) {
    const contentEncoding = body.inflated === true ? null : incoming.header('content-encoding')[0]
    const { shape, choose, parse } = form
    return readMeaning({ contentType, contentEncoding, body: body.bytes, shape, choose, parse })
  }
  // Written again from what a parser made of it. JSON keeps its own type, so that it is equal to the same JSON as
  // bytes.
  const type = contentType?.split(';')[0]?.trim().toLowerCase() ?? ''
  const written = Buffer.from(JSON.stringify(body.parsed) ?? '')
  if (type.endsWith('json')) return readMeaning({ ...form, contentType, body: written })
  const { meaning, json } = readMeaning({ ...form, contentType: 'application/json', body: written })
  return { meaning: `${type} ${meaning}`, json }
}

/** The meaning of a body, all of it, whatever a route picks. */
export function wholeBody(incoming: Pick<Incoming, 'header'>, body: IncomingBody): string {
  return bodyMeaning(incoming, body, { shape: 1, choose: undefined }).meaning
}

/** The body as a parser gives it: a JSON value, the fields of a form, or text. Throws `bad_input` for any other. */
export function parsedBody(incoming: Pick<Incoming, 'header'>, body: IncomingBody): unknown {
  if ('parsed' in body) return body.parsed
  const { contentType, contentEncoding, body: bytes } = questionOf(incoming, body, 1, null)
  const { json } = readMeaning({ contentType, contentEncoding, body: bytes, shape: 1, parse: true })
  if (json !== undefined) return json
  const type = contentType?.split(';')[0]?.trim().toLowerCase() ?? ''
  const text = contentEncoding === null ? new TextDecoder().decode(bytes) : null
  if (text !== null && type === 'application/x-www-form-urlencoded') return formFields(new URLSearchParams(text))
  if (text !== null && type.startsWith('text/')) return text
  throw bodyRefusal('not_parsed', { field: 'body' })
}

/** A field that is there several times is a list, as in common form parsers. */
function formFields(form: URLSearchParams): Readonly<Record<string, string | readonly string[]>> {
  const fields = [...new Set(form.keys())].map((name): [string, string | string[]] => {
    const values = form.getAll(name)
    return [name, values.length === 1 ? values.join() : values]
  })
  return Object.fromEntries(fields)
}

const LONGEST_PATH_CHARS = 400

/** A path that would not fit into an identity is named by its digest: it stays a resource of its own. */
export function resource(method: string, path: string): string {
  return path.length <= LONGEST_PATH_CHARS ? `${method} ${path}` : `${method} sha256:${sha256Hex(path)}`
}

export function problem(situation: Situation, detail: string, operation?: string): RequestProblem {
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
