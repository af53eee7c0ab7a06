import { defaults, SECOND } from '../../ledger/core/limits.ts'
import { CONTENT_WITHIN_MS } from './content-options.ts'
import type { BatchRoute, CommandRoute, ServedRoute } from './describe.ts'
import { describe, retentionOf } from './describe.ts'
import { headerOf } from './exchange.ts'
import { problemSchema, stripeSchema } from './openapi-schemas.ts'
import { PREFERRED_WAIT_MOST_MS } from './prefer.ts'
import type { Situation } from './problem.ts'
import { situations } from './problem.ts'
import type { Profile } from './profiles.ts'
import { profiles } from './profiles.ts'
import { meaningOf } from './record.ts'
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
  readonly responses?: Readonly<Record<string, OpenApiResponse>>
  readonly [member: string]: unknown
}

interface OpenApiResponse {
  readonly description?: string
  readonly headers?: Readonly<Record<string, unknown>>
  readonly content?: Readonly<Record<string, OpenApiMedia>>
  readonly [member: string]: unknown
}

interface OpenApiMedia {
  readonly examples?: Readonly<Record<string, unknown>>
  readonly [member: string]: unknown
}

type Documented = Required<Pick<OpenApiDocument, 'paths' | 'components'>>

/** The schema of every problem document; `openapi` adds it, and your own answers may refer to it. */
export const problemReference = { $ref: '#/components/schemas/OnceonlyProblem' } as const
const stripeReference = { $ref: '#/components/schemas/OnceonlyStripeError' } as const

/**
 * Adds what every route promises: its key, its problem answers, its replay header, its lifetime, and its design.
 *
 * @example
 * ```ts
 * import { openapi } from 'onceonly/openapi'
 *
 * const definition = { name: 'order.place', effect: 'transaction' } as const
 * const document = openapi({ openapi: '3.1.1', info: { title: 'Shop', version: '1' } }, [
 *   { kind: 'command', method: 'POST', path: '/orders', definition },
 * ])
 * ```
 */
export function openapi<D extends OpenApiDocument>(document: D, routes: readonly ServedRoute[]): D & Documented {
  const paths: Record<string, OpenApiPath> = { ...document.paths }
  for (const route of routes) {
    const method = route.method.toLowerCase()
    const path = paths[route.path] ?? {}
    paths[route.path] = { ...path, [method]: described((path[method] ?? {}) as OpenApiOperation, route) }
  }
  const stripe = routes.some((route) => route.kind === 'command' && route.definition.profile === 'stripe')
  const schemas = {
    ...document.components?.schemas,
    OnceonlyProblem: problemSchema,
    ...(stripe ? { OnceonlyStripeError: stripeSchema } : {}),
  }
  return { ...document, paths, components: { ...document.components, schemas } }
}

function described(operation: OpenApiOperation, route: ServedRoute): OpenApiOperation {
  const checklist = describe(route)
  switch (route.kind) {
    case 'command':
      return {
        ...operation,
        parameters: [...(operation.parameters ?? []), ...keyParameter(route), ...preferParameter(route)],
        responses: responsesOf(operation.responses ?? {}, route),
        'x-onceonly': { ...commandContract(route), checklist },
      }
    case 'batch':
      return { ...operation, 'x-onceonly': { ...batchContract(route), checklist } }
    case 'natural':
      return { ...operation, 'x-onceonly': { kind: route.kind, repeats: route.about.repeats, checklist } }
  }
}

function keyParameter({ definition }: CommandRoute): readonly unknown[] {
  const { key = 'required', keyFrom = { header: DEFAULT_KEY_HEADER } } = definition
  if (!('header' in keyFrom)) return []
  return [
    {
      name: keyFrom.header,
      in: 'header',
      required: key === 'required',
      description:
        'Names one intended effect. Send the same key with every retry of the same request; it may be quoted or bare. ' +
        `It is remembered for ${retentionOf(definition)}.`,
      schema: { type: 'string', minLength: 1, maxLength: 255 },
    },
  ]
}

function preferParameter({ definition }: CommandRoute): readonly unknown[] {
  if (definition.respondAsync !== true) return []
  return [
    {
      name: 'Prefer',
      in: 'header',
      required: false,
      description:
        'With a key: `respond-async` asks for 202 with the location of the operation, while the request is processed; ' +
        '`respond-async, wait=10` asks for it when the answer is not there within 10 seconds ' +
        `(${PREFERRED_WAIT_MOST_MS / SECOND} at most). A server that is busy answers as without it.`,
      schema: { type: 'string' },
      example: 'respond-async, wait=10',
    },
  ]
}

/** What the route answers itself, and what the protocol answers in its place. */
function responsesOf(
  own: Readonly<Record<string, OpenApiResponse>>,
  route: CommandRoute,
): Record<string, OpenApiResponse> {
  const responses: Record<string, OpenApiResponse> = replayable(own, route)
  for (const [status, ours] of protocolResponses(route)) {
    const theirs = responses[status]
    responses[status] = theirs === undefined ? ours : merged(theirs, ours)
  }
  return responses
}

/** The situations that this route can get into. */
function situationsOf({ definition }: CommandRoute): readonly Situation[] {
  const { key = 'required', effect, afterExpiry, authorize, perKeyLimit, whileRunning, respondAsync } = definition
  return [
    'invalid-request',
    'idempotency-key-invalid',
    ...(key === 'required' ? (['idempotency-key-missing'] as const) : []),
    'idempotency-key-reused',
    ...(respondAsync === true || whileRunning === 'accept' ? (['request-accepted'] as const) : []),
    ...(whileRunning === 'accept' ? [] : (['request-in-progress'] as const)),
    ...(effect === 'transaction' ? [] : (['retry-later'] as const)),
    ...(effect === 'external' ? (['outcome-unknown'] as const) : []),
    'response-not-stored',
    ...(afterExpiry === 'refuse' ? (['key-expired'] as const) : []),
    ...(authorize === undefined ? [] : (['not-authorized'] as const)),
    ...(perKeyLimit === undefined ? [] : (['too-many-attempts'] as const)),
    'content-too-large',
    'store-unavailable',
  ]
}

/** By status, because several situations share one; each with the very document that its clients will read. */
function protocolResponses(route: CommandRoute): ReadonlyMap<string, OpenApiResponse> {
  const profile = profiles[route.definition.profile ?? 'standard']
  const operation = route.definition.name ?? `${route.method.toUpperCase()} ${route.path}`
  const byStatus = new Map<string, OpenApiResponse>()
  for (const situation of situationsOf(route)) {
    const [status, response] = protocolResponse(route.definition, profile, situation, operation)
    const before = byStatus.get(status)
    byStatus.set(status, before === undefined ? response : merged(before, response))
  }
  return byStatus
}

const EXAMPLE_RETRY_MS = 1_000
const EXAMPLE_ID = '0123456789abcdef0123456789abcdef'

function protocolResponse(
  { respondAsync = false }: CommandRoute['definition'],
  profile: Profile,
  situation: Situation,
  operation: string,
): [string, OpenApiResponse] {
  const { title, retryable } = situations[situation]
  const location = situation === 'request-accepted' ? { location: `/operations/${EXAMPLE_ID}` } : {}
  const later = retryable ? { retryAfterMs: EXAMPLE_RETRY_MS } : {}
  const answer = profile.answer('/problems', situation, { detail: `${title}.`, operation, ...later, ...location })
  const value: unknown = JSON.parse(new TextDecoder().decode(answer.body))
  const type = headerOf(answer.headers, 'content-type') ?? 'application/json'
  const schema = profile.name === 'stripe' ? stripeReference : problemReference
  const headers = {
    ...(headerOf(answer.headers, 'retry-after') === null ? {} : { 'Retry-After': retryAfter }),
    ...(headerOf(answer.headers, 'location') === null ? {} : { Location: statusLocation }),
    ...(respondAsync && situation === 'request-accepted' ? preferenceApplied : {}),
  }
  return [
    String(answer.status),
    {
      description: title,
      ...(Object.keys(headers).length === 0 ? {} : { headers }),
      content: { [type]: { schema, examples: { [situation]: { summary: title, value } } } },
    },
  ]
}

const retryAfter = {
  description: 'In how many seconds the same request may be sent again.',
  schema: { type: 'integer', minimum: 1 },
}

const statusLocation = {
  description: 'The URL of the status of the operation.',
  schema: { type: 'string', format: 'uri-reference' },
}

const preferenceApplied = {
  'Preference-Applied': {
    description: 'Present where the request asked for it by `Prefer: respond-async`.',
    schema: { type: 'string', enum: ['respond-async'] },
  },
}

/** Two reasons for one status: both are listed, and the existing entry wins. */
function merged(first: OpenApiResponse, second: OpenApiResponse): OpenApiResponse {
  const content: Record<string, OpenApiMedia> = { ...second.content, ...first.content }
  for (const [type, media] of Object.entries(second.content ?? {})) {
    const before = first.content?.[type]
    // OpenAPI knows one example or several, not both.
    if (before === undefined || 'example' in before) continue
    content[type] = { ...before, examples: { ...media.examples, ...before.examples } }
  }
  const headers = { ...second.headers, ...first.headers }
  return {
    ...second,
    ...first,
    description: [first.description, second.description].filter((each) => each !== undefined).join('; '),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    ...(Object.keys(content).length === 0 ? {} : { content }),
  }
}

/** What is recorded is replayed, refusals too. A browser may read the replay header only where it is exposed. */
function replayable(
  responses: Readonly<Record<string, OpenApiResponse>>,
  { definition }: CommandRoute,
): Record<string, OpenApiResponse> {
  const finality = definition.finality ?? profiles[definition.profile ?? 'standard'].finality
  const isReplayed = (status: number) => {
    const meaning = meaningOf({ status, headers: [] }, finality)
    return meaning === 'succeeded' || meaning === 'refused'
  }
  return Object.fromEntries(
    Object.entries(responses).map(([status, response]) => [
      status,
      isReplayed(Number(status)) ? { ...response, headers: { ...response.headers, ...replayHeaders } } : response,
    ]),
  )
}

const replayHeaders = {
  'Idempotent-Replayed': {
    description: 'Present and `true` when this is the answer of an earlier attempt.',
    schema: { type: 'string', enum: ['true'] },
  },
  'Access-Control-Expose-Headers': {
    description: 'Names `Idempotent-Replayed`, so that scripts of other origins may read it.',
    schema: { type: 'string' },
  },
} as const

function commandContract({ kind, definition }: CommandRoute): Readonly<Record<string, unknown>> {
  const {
    effect,
    key = 'required',
    retainMs = defaults.retainMs,
    afterExpiry = 'new',
    whileRunning = { waitMs: defaults.waitMs },
    keep = 'response',
    respondAsync = false,
  } = definition
  const named = definition.name === undefined ? {} : { operation: definition.name }
  const { withinMs = CONTENT_WITHIN_MS, scope = 'tenant' } = definition.content ?? {}
  const content = definition.content === undefined ? {} : { content: { withinMs, scope } }
  return { kind, ...named, effect, key, ...content, retainMs, afterExpiry, whileRunning, respondAsync, keep }
}

function batchContract({ kind, definition }: BatchRoute): Readonly<Record<string, unknown>> {
  const { name: operation, effect, retainMs = defaults.retainMs, afterExpiry = 'new' } = definition
  return { kind, operation, effect, key: 'item', retainMs, afterExpiry }
}
