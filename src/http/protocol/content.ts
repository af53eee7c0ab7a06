import { fingerprintOf } from '../../ledger/core/digest.ts'
import { isOnceError, OnceError } from '../../ledger/core/errors.ts'
import { type ContentPart, contentKey, contentPolicy, GUARD_PREFIX } from '../../ledger/guard/content-key.ts'
import type { Execution } from '../../ledger/present.ts'
import type { Awaitable } from '../../runtime/runtime.ts'
import { readMeaning } from './body.ts'
import { bodyRefusal } from './body-refusal.ts'
import type { ContentKey } from './content-options.ts'
import { CONTENT_WITHIN_MS } from './content-options.ts'
import type { Incoming, IncomingBody } from './exchange.ts'
import { normaliseTarget } from './path.ts'
import type { ReadRequest } from './read.ts'
import { asProblem, problem, questionOf, resource, wholeBody } from './read.ts'
import type { RouteDefinition } from './route.ts'
import type { Running } from './running.ts'

/** The route as it treats requests without a key: an operation of its own, kept for the window. */
export function contentDefinition<N>(definition: RouteDefinition<N>, content: ContentKey): RouteDefinition<N> {
  const {
    name,
    probe,
    fingerprint: _fingerprint,
    shape: _shape,
    shapes: _shapes,
    refuseMs: _refuseMs,
    ...rest
  } = definition
  const { withinMs = CONTENT_WITHIN_MS, waitMs } = content
  const { onAbandoned, ...policy } = contentPolicy(withinMs)
  return {
    ...(probe === undefined ? { onAbandoned } : { probe }),
    ...rest,
    ...policy,
    // A content of unknown outcome is held as long as any other.
    unknownMs: withinMs,
    afterExpiry: 'new',
    ...(name === undefined ? {} : { name: GUARD_PREFIX + name }),
    ...(waitMs === undefined ? {} : { whileRunning: { waitMs } }),
  }
}

export function opensWithoutStore({ effect, content }: Pick<RouteDefinition<never>, 'effect' | 'content'>): boolean {
  return (content?.onStoreDown ?? (effect === 'transaction' ? 'closed' : 'open')) === 'open'
}

/** Contents have one form: parts that change make other keys. */
const SHAPE = 1

/**
 * The content of a request as its key. What is wrong with the request is found before anything is claimed.
 *
 * @param report gets what may be a mistake of the route, although the request is refused
 */
export async function readContent<N>(
  { name }: Pick<RouteDefinition<N>, 'name'>,
  { of }: ContentKey,
  incoming: Incoming,
  report: (error: unknown) => void,
): Promise<Exclude<ReadRequest, { readonly kind: 'keyless' }>> {
  try {
    const { method } = incoming
    const target = normaliseTarget(incoming.target)
    if ('problem' in target) return problem('invalid-request', target.problem)
    const body = await incoming.body()
    const parts =
      of === undefined ? [await bodyDigest(incoming, body)] : partsOf(of, parsedBody(incoming, body), report)
    // Evaluated by the handler, but part of what is asked for.
    const conditions = [incoming.header('if-match'), incoming.header('if-none-match')]
    const head = [method, target.path, target.query, JSON.stringify(conditions)]
    const key = contentKey([...head, contentKey(parts)])
    const operation = name ?? resource(method, target.path)
    // The key is all that counts of a content.
    return { kind: 'keyed', key, operation, fingerprints: [fingerprintOf(key, SHAPE)], bytes: null }
  } catch (error) {
    return asProblem(error)
  }
}

/** A large body is read in another thread, where the server in front has one. */
async function bodyDigest(incoming: Incoming, body: IncomingBody): Promise<string> {
  const answer = 'bytes' in body ? await incoming.askElsewhere?.(questionOf(incoming, body, SHAPE, null)) : null
  return answer?.meaning ?? wholeBody(incoming, body)
}

/** A client can leave out what a route reads, so that most of what goes wrong here is the fault of its body. */
function partsOf(
  of: NonNullable<ContentKey['of']>,
  body: unknown,
  report: (error: unknown) => void,
): readonly ContentPart[] {
  let parts: unknown
  try {
    parts = of(body)
  } catch (cause) {
    if (isOnceError(cause)) throw cause
    report(cause)
    throw badBody('`content.of` failed on this body.', cause)
  }
  // A function that forgets to return looks the same as one whose field is missing.
  if (parts === undefined) report(wrongParts('undefined'))
  else if (parts !== null && !Array.isArray(parts)) {
    throw wrongParts(parts instanceof Promise ? 'a promise' : typeof parts)
  }
  const found = (parts ?? []) as readonly ContentPart[]
  if (found.every((part) => part === null || part === undefined)) {
    throw badBody('The body has none of the fields that identify it.')
  }
  return found
}

function badBody(text: string, cause?: unknown): OnceError {
  return new OnceError('bad_input', text, { cause, details: { field: 'body' } })
}

function wrongParts(got: string): OnceError {
  const text = `\`content.of\` returned ${got}: return the parts that identify the request, as in [body.to, body.text].`
  return new OnceError('bad_option', text, { details: { option: 'content.of' } })
}

/** The same refusal for a caller that sent no key. */
export function aboutContent<T>(execution: Execution<T>): Execution<T> {
  if (execution.kind !== 'refused') return execution
  return { kind: 'refused', error: errorOfContent(execution.error) }
}

/** The same error for a caller that sent no key. */
export function errorOfContent(error: OnceError): OnceError {
  const { code, retryAfterMs, details } = error
  const options = { details, ...(retryAfterMs === null ? {} : { retryAfterMs }) }
  if (code === 'in_progress') return new OnceError(code, 'An identical request is still being processed.', options)
  if (code !== 'outcome_unknown') return error
  return new OnceError(code, 'The outcome of an identical request is unknown.', options)
}

/** Where a store may be slow to decide, the answer waits no longer for its record: that is written behind it. */
export function withinTime<Tx>(running: Running<Tx>, decideMs: number | undefined): Running<Tx> {
  if (decideMs === undefined) return running
  const { kind, context, early } = running
  return {
    kind,
    context,
    early,
    inside: (work) => running.inside(work),
    finish: (captured, thrown) => atMost(running.finish(captured, thrown), decideMs, null),
    fail: (error) => atMost(running.fail(error), decideMs, undefined),
  }
}

async function atMost<T>(work: Awaitable<T>, ms: number, otherwise: T): Promise<T> {
  const late = Promise.withResolvers<T>()
  const timer = setTimeout(late.resolve, ms, otherwise)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** The body as a parser gives it: a JSON value, the fields of a form, or text. Throws `bad_input` for any other. */
function parsedBody(incoming: Pick<Incoming, 'header'>, body: IncomingBody): unknown {
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
