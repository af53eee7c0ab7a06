import { fingerprintOf, lengthPrefixed, sha256Hex } from '../../ledger/core/digest.ts'
import { isOnceError } from '../../ledger/core/errors.ts'
import type { Awaitable } from '../../runtime/runtime.ts'
import type { BodyInput, BodyMeaning } from './body.ts'
import { readMeaning } from './body.ts'
import type { Incoming, IncomingBody } from './exchange.ts'
import { UnreadableBody } from './exchange.ts'
import type { KeyFound } from './key.ts'
import { parseKey } from './key.ts'
import type { BodyQuestion } from './large-body.ts'
import { keyInBody } from './large-body.ts'
import type { Target } from './path.ts'
import { normaliseTarget } from './path.ts'
import type { ProblemDetail, Situation } from './problem.ts'
import type { RouteDefinition } from './route.ts'
import { DEFAULT_KEY_HEADER } from './route.ts'

/** A request under a key, in one spelling. */
export interface KeyedRequest {
  readonly kind: 'keyed'
  readonly key: string
  readonly operation: string
  /** What makes it the same request: in the current form of the route, then in its older ones. */
  readonly fingerprints: readonly [string, ...string[]]
  /** Its body as it came, where that may be compared when it comes again. */
  readonly bytes: Uint8Array | null
}

/** A class, and not a literal: V8 would keep the body of each request until the next full collection. */
class Keyed implements KeyedRequest {
  declare readonly kind: 'keyed'
  declare readonly key: string
  declare readonly operation: string
  declare readonly fingerprints: KeyedRequest['fingerprints']
  declare readonly bytes: Uint8Array | null

  constructor(key: string, operation: string, fingerprints: Keyed['fingerprints'], bytes: Uint8Array | null) {
    this.kind = 'keyed'
    this.key = key
    this.operation = operation
    this.fingerprints = fingerprints
    this.bytes = bytes
  }
}

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
  const forms = [current, ...older]
  /** Functions of the route can only be called in this thread, and may not always return the same. */
  const isPortable = route.fingerprint === undefined && route.shapes === undefined
  const remembers = isPortable && header !== null
  const readings = createReadings()

  function read(incoming: Incoming): Awaitable<ReadRequest> {
    try {
      // 1. The key, before anything is read that a request without one does not need.
      const key = header === null ? null : parseKey(incoming.header(header))
      if (key !== null && 'problem' in key) return withoutKey(route, incoming, key)
      // 2. The body. Most frameworks have it already, and waiting for it would cost every request.
      const body = incoming.body()
      const found = body instanceof Promise ? body.then((given) => withBody(incoming, key, given)) : null
      return found === null ? withBody(incoming, key, body as IncomingBody) : found.catch(asProblem)
    } catch (error) {
      return asProblem(error)
    }
  }

  function withBody(incoming: Incoming, key: WithKey | null, body: IncomingBody): Awaitable<ReadRequest> {
    // 3. What came before with the same bytes is the same request.
    const bytes = remembers && 'bytes' in body && body.inflated !== true ? body.bytes : null
    const known = bytes === null || key === null ? null : readings.find(key.key, incoming, bytes)
    if (known !== null) return known
    // 4. The resource.
    const target = normaliseTarget(incoming.target)
    if ('problem' in target) return problem('invalid-request', target.problem)
    // 5. The body, by its meaning.
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

  /** @param bodies in the forms of the route */
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
    const fingerprints: string[] = []
    for (let at = 0; at < bodies.length; at++) {
      const text = lengthPrefixed([bodies[at] as string, method, path, query].concat(conditions))
      fingerprints.push(fingerprintOf(text, forms[at]?.shape ?? shape))
    }
    const operation = route.name ?? resource(method, path)
    return new Keyed(key.key, operation, fingerprints as [string, ...string[]], bytes)
  }

  return { read, remember: readings.keep }
}

type WithKey = Extract<KeyFound, { readonly key: string }>

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

/**
 * Requests that came again, as they were read: the same bytes with the same head are the same request, so that their JSON
 * need not be brought into its canonical form and hashed a third time. What is found here says nothing about the record.
 */
interface Readings {
  /** @param body its bytes as they came */
  find(key: string, incoming: Incoming, body: Uint8Array): KeyedRequest | null
  keep(read: KeyedRequest, incoming: Incoming): void
}

interface Reading {
  readonly read: KeyedRequest
  readonly method: string
  readonly target: string
  readonly contentType: string | undefined
  readonly contentEncoding: string | undefined
  readonly body: Uint8Array
}

/** Larger bodies are not kept, and each one counts with what surrounds it. */
const BODY_BYTES_MOST = 16 * 1_024
const READING_BYTES = 512
/** Per route, in two halves: when the newer half is full, the older one is dropped. */
const HALF_BYTES = 1_024 * 1_024

function createReadings(): Readings {
  let newer = new Map<string, Reading>()
  let older = newer
  let bytes = 0

  function put(reading: Reading): void {
    if (bytes > HALF_BYTES) {
      older = newer
      newer = new Map()
      bytes = 0
    }
    newer.set(reading.read.key, reading)
    const { target, contentType = '', contentEncoding = '' } = reading
    const headChars = target.length + contentType.length + contentEncoding.length + reading.read.operation.length
    bytes += READING_BYTES + headChars + reading.body.length
  }

  return {
    find(key, incoming, body) {
      const reading = newer.get(key) ?? older.get(key)
      if (reading === undefined || !isSame(reading, incoming, body)) return null
      if (newer !== older && !newer.has(key)) put(reading)
      return reading.read
    },
    keep(read, incoming) {
      const { bytes: body } = read
      if (body === null || body.length > BODY_BYTES_MOST || newer.has(read.key)) return
      // What a condition adds to the request is not compared.
      if (incoming.header('if-match').length > 0 || incoming.header('if-none-match').length > 0) return
      put({
        read: new Keyed(read.key, read.operation, read.fingerprints, null),
        method: incoming.method,
        target: incoming.target,
        contentType: incoming.header('content-type')[0],
        contentEncoding: incoming.header('content-encoding')[0],
        // A copy: the framework's buffer may be part of a larger one, or be used again.
        body: Uint8Array.prototype.slice.call(body),
      })
    },
  }
}

/** The same bytes with the same head. */
function isSame(reading: Reading, incoming: Incoming, body: Uint8Array): boolean {
  const { body: a } = reading
  const hasSameHead =
    a.length === body.length &&
    reading.target === incoming.target &&
    reading.method === incoming.method &&
    reading.contentType === incoming.header('content-type')[0] &&
    reading.contentEncoding === incoming.header('content-encoding')[0] &&
    incoming.header('if-match').length === 0 &&
    incoming.header('if-none-match').length === 0
  if (!hasSameHead) return false
  for (let at = 0; at < a.length; at++) if (a[at] !== body[at]) return false
  return true
}
