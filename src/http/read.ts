import { sha256Hex } from '../core/digest.ts'
import { isOnceError } from '../core/errors.ts'
import { fingerprintBody } from './body.ts'
import type { Incoming } from './exchange.ts'
import { keyFromBody, parseKey } from './key.ts'
import { normaliseTarget } from './path.ts'
import type { ProblemDetail, Situation } from './problem.ts'
import type { RouteDefinition } from './route.ts'
import { DEFAULT_KEY_HEADER } from './route.ts'

/** What a request asks for, in one spelling; or what is wrong with it. Nothing is looked up, nothing is claimed. */
export type ReadRequest =
  | { readonly kind: 'keyed'; readonly key: string; readonly operation: string; readonly input: unknown }
  | {
      readonly kind: 'keyless'
      readonly allowed: boolean
      readonly situation: Situation
      readonly detail: ProblemDetail
    }
  | { readonly kind: 'problem'; readonly situation: Situation; readonly detail: ProblemDetail }

/** Evaluated by the handler, but part of what was asked: a retry must carry the same ones. */
const CONDITIONS = ['if-match', 'if-none-match']

export function readRequest<N>(route: RouteDefinition<N>, incoming: Incoming): ReadRequest {
  const target = normaliseTarget(incoming.target)
  if ('problem' in target) return invalid(target.problem)
  try {
    const body = fingerprintBody({
      contentType: incoming.header('content-type')[0] ?? null,
      contentEncoding: incoming.header('content-encoding')[0] ?? null,
      body: incoming.body,
      shape: route.shape ?? 1,
      parse: route.keyFrom !== undefined && 'field' in route.keyFrom,
      ...(route.fingerprint === undefined ? {} : { choose: route.fingerprint }),
    })
    const operation = route.name ?? resource(incoming.method, target.path)
    const key = keyOf(route, incoming, body.json)
    if ('problem' in key) return withoutKey(route, operation, key)
    const conditions = CONDITIONS.map((name) => incoming.header(name))
    const input = {
      method: incoming.method,
      path: target.path,
      query: target.query,
      conditions,
      body: body.fingerprint,
    }
    return { kind: 'keyed', key: key.key, operation, input }
  } catch (error) {
    if (isOnceError(error, 'bad_input')) return invalid(error.message.replace(error.next, '').trim())
    throw error
  }
}

function invalid(detail: string): ReadRequest {
  return { kind: 'problem', situation: 'invalid-request', detail: { detail } }
}

type KeyFound = ReturnType<typeof parseKey>

function keyOf<N>(
  { keyFrom = { header: DEFAULT_KEY_HEADER } }: RouteDefinition<N>,
  incoming: Incoming,
  json: unknown,
): KeyFound {
  if ('header' in keyFrom) return parseKey(incoming.header(keyFrom.header.toLowerCase()))
  return json === undefined ? { problem: 'missing' } : keyFromBody(json, keyFrom.field)
}

const LONGEST_PATH_CHARS = 400

/** A path that would not fit into an identity is named by its digest: it stays a resource of its own. */
function resource(method: string, path: string): string {
  return path.length <= LONGEST_PATH_CHARS ? `${method} ${path}` : `${method} sha256:${sha256Hex(path)}`
}

function withoutKey<N>(
  route: RouteDefinition<N>,
  operation: string,
  key: Extract<KeyFound, { problem: string }>,
): ReadRequest {
  if (key.problem === 'invalid') {
    return { kind: 'problem', situation: 'idempotency-key-invalid', detail: { detail: key.detail, operation } }
  }
  const name =
    route.keyFrom === undefined
      ? 'Idempotency-Key'
      : 'header' in route.keyFrom
        ? route.keyFrom.header
        : route.keyFrom.field
  const detail = { detail: `${operation} needs the key \`${name}\`.`, operation }
  return {
    kind: 'keyless',
    allowed: (route.key ?? 'required') !== 'required',
    situation: 'idempotency-key-missing',
    detail,
  }
}
