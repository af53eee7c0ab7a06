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
      body: incoming.body,
      shape: route.shape ?? 1,
      ...(route.fingerprint === undefined ? {} : { choose: route.fingerprint }),
    })
    const operation = route.name ?? `${incoming.method} ${target.path}`
    const key = keyOf(route, incoming)
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

function keyOf<N>({ keyFrom = { header: DEFAULT_KEY_HEADER } }: RouteDefinition<N>, incoming: Incoming): KeyFound {
  if ('header' in keyFrom) return parseKey(incoming.header(keyFrom.header.toLowerCase()))
  if (incoming.body.length === 0) return { problem: 'missing' }
  return keyFromBody(parsed(incoming.body), keyFrom.field)
}

const decoder = new TextDecoder()

/** The body was checked to be JSON already where its type says so; anything else has no fields. */
function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(body)) as unknown
  } catch {
    return null
  }
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
