import { defaults } from '../core/limits.ts'
import type { ServedRoute } from './describe.ts'
import { describe } from './describe.ts'
import type { Situation } from './problem.ts'
import { PROBLEM_TYPE, situations } from './problem.ts'
import { DEFAULT_KEY_HEADER } from './route.ts'

/** As much of an OpenAPI 3.1 document as we touch. */
export interface OpenApiDocument {
  readonly paths?: Readonly<Record<string, OpenApiPath>>
  readonly components?: { readonly schemas?: Readonly<Record<string, unknown>> } & Readonly<Record<string, unknown>>
  readonly [member: string]: unknown
}

type OpenApiPath = Readonly<Record<string, unknown>>

interface OpenApiOperation {
  readonly parameters?: readonly unknown[]
  readonly responses?: Readonly<Record<string, unknown>>
  readonly [member: string]: unknown
}

const PROBLEM_SCHEMA = 'OnceonlyProblem'

/** Adds what every protected route promises: its key, its problem answers, its replay header, and how long it remembers. */
export function openapi<D extends OpenApiDocument>(document: D, routes: readonly ServedRoute[]): D {
  const paths: Record<string, OpenApiPath> = { ...document.paths }
  for (const route of routes) {
    const method = route.method.toLowerCase()
    const path = paths[route.path] ?? {}
    paths[route.path] = { ...path, [method]: described((path[method] ?? {}) as OpenApiOperation, route) }
  }
  const schemas = { ...document.components?.schemas, [PROBLEM_SCHEMA]: problemSchema }
  return { ...document, paths, components: { ...document.components, schemas } }
}

function described(operation: OpenApiOperation, route: ServedRoute): OpenApiOperation {
  const { key = 'required', keyFrom = { header: DEFAULT_KEY_HEADER } } = route.definition
  const parameter =
    'header' in keyFrom
      ? [
          {
            name: keyFrom.header === DEFAULT_KEY_HEADER ? 'Idempotency-Key' : keyFrom.header,
            in: 'header',
            required: key === 'required',
            description: 'Names one intended effect. Send the same key with every retry of the same request.',
            schema: { type: 'string', minLength: 1, maxLength: 255 },
          },
        ]
      : []
  return {
    ...operation,
    parameters: [...(operation.parameters ?? []), ...parameter],
    responses: { ...problemResponses(route), ...replayable(operation.responses ?? {}) },
    'x-onceonly': contract(route),
  }
}

/** The situations that this route can get into, by status: several share one. */
function problemResponses({ definition }: ServedRoute): Record<string, unknown> {
  const possible: Situation[] = [
    'invalid-request',
    'idempotency-key-invalid',
    'idempotency-key-reused',
    'request-in-progress',
    'response-not-stored',
    'store-unavailable',
  ]
  if ((definition.key ?? 'required') === 'required') possible.push('idempotency-key-missing')
  if (definition.effect === 'external') possible.push('outcome-unknown')
  if (definition.effect !== 'transaction') possible.push('retry-later')
  if (definition.afterExpiry === 'refuse') possible.push('key-expired')
  if (definition.authorize !== undefined) possible.push('not-authorized')
  if (definition.perKeyLimit !== undefined) possible.push('too-many-attempts')
  const byStatus = new Map<number, Situation[]>()
  for (const each of possible) {
    const { status } = situations[each]
    byStatus.set(status, [...(byStatus.get(status) ?? []), each])
  }
  return Object.fromEntries([...byStatus].map(([status, names]) => [String(status), problemResponse(names)]))
}

function problemResponse(names: readonly Situation[]): unknown {
  return {
    description: names.map((name) => situations[name].title).join('; '),
    content: { [PROBLEM_TYPE]: { schema: { $ref: `#/components/schemas/${PROBLEM_SCHEMA}` } } },
  }
}

/** A browser may read the replay header only if it is exposed, so both are part of every success. */
function replayable(responses: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const headers = {
    'Idempotent-Replayed': {
      description: 'Present and `true` when this is the answer of an earlier attempt.',
      schema: { type: 'string', enum: ['true'] },
    },
    'Access-Control-Expose-Headers': {
      description: 'Names `Idempotent-Replayed` for browsers of other origins.',
      schema: { type: 'string' },
    },
  }
  return Object.fromEntries(
    Object.entries(responses).map(([status, response]) => {
      const { headers: own = {}, ...rest } = response as { headers?: object }
      return [status, /^[23]/.test(status) ? { ...rest, headers: { ...own, ...headers } } : response]
    }),
  )
}

function contract(route: ServedRoute): unknown {
  const {
    effect,
    key = 'required',
    retainMs = defaults.retainMs,
    afterExpiry = 'new',
    whileRunning = { waitMs: defaults.waitMs },
    keep = 'response',
  } = route.definition
  const checklist = Object.fromEntries(describe(route).map(({ question, answer }) => [question, answer]))
  return { effect, key, retainMs, afterExpiry, whileRunning, keep, checklist }
}

const problemSchema = {
  type: 'object',
  description: 'A problem document of RFC 9457.',
  required: ['type', 'title', 'status', 'detail', 'retryable'],
  properties: {
    type: { type: 'string', format: 'uri-reference' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    instance: { type: 'string', format: 'uri-reference' },
    retryable: { type: 'boolean', description: 'May the same request succeed later, unchanged?' },
    operation: { type: 'string' },
    retryAfterMs: { type: 'number' },
    errors: {
      type: 'array',
      items: {
        type: 'object',
        required: ['field', 'detail'],
        properties: { field: { type: 'string' }, detail: { type: 'string' } },
      },
    },
  },
} as const
