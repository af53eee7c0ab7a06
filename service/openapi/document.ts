import { type OpenApiDocument, openapi, problemReference } from 'onceonly/openapi'
import Type, { type TSchema } from 'typebox'
import { type CollectedRoute, servedRoutes } from './collect.ts'
import { type AnswerDeclaration, type Declaration, nameOf, type Schema } from './declaration.ts'

const JSON_TYPE = 'application/json'
const PROBLEM = 'application/problem+json'

interface DeclaredRoute extends CollectedRoute {
  readonly declaration: Declaration
}

/** The OpenAPI document of these routes: what they declare, and what all of them have in common. */
export function documentOf(
  routes: readonly CollectedRoute[],
): OpenApiDocument & Required<Pick<OpenApiDocument, 'paths'>> {
  const declared = routes.filter(isDeclared).toSorted(inOrder)
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of declared) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operationOf(route) }
  }
  const systems = new Map(declared.map(({ declaration: { system } }) => [system.name, system]))
  const schemas: Record<string, unknown> = {}
  return openapi(
    {
      openapi: '3.1.1',
      info,
      servers: [{ url: '/', description: 'This server' }],
      tags: [...systems.values()].map(({ name, about }) => ({ name, description: about })),
      paths: hoisted(paths, schemas) as typeof paths,
      components: { securitySchemes, schemas },
    },
    servedRoutes(declared),
  )
}

/** First what callers use, then what operators do, then the server itself; commands before reads, and by path. */
const audiences: readonly Declaration['access'][] = ['api key', 'operator', 'hook secret', 'anyone']

function inOrder(a: DeclaredRoute, b: DeclaredRoute): number {
  const audience = ({ declaration }: DeclaredRoute) => audiences.indexOf(declaration.access)
  const reads = ({ method }: DeclaredRoute) => Number(method === 'GET')
  return audience(a) - audience(b) || reads(a) - reads(b) || (a.path < b.path ? -1 : a.path > b.path ? 1 : 0)
}

function isDeclared(route: CollectedRoute): route is DeclaredRoute {
  return route.declaration !== null && route.declaration !== 'page'
}

const info = {
  title: 'Onceonly',
  version: '0.1.0',
  summary: 'Same command identity, same effective result.',
  description:
    'The systems of this server. Every request that changes something may be sent again: under the same key it has one ' +
    'effect, and every retry gets the answer of the first. Each operation says in `x-onceonly` how it does that, and ' +
    'for how long it remembers. Errors are problem documents (RFC 9457) that say whether a retry can help.',
  license: { name: 'MIT', identifier: 'MIT' },
}

const securitySchemes = {
  apiKey: {
    type: 'http',
    scheme: 'bearer',
    description:
      'The API key of a caller. It names the workspace, too; where the one of the demo is stands in what the server prints at the start.',
  },
  operator: { type: 'http', scheme: 'bearer', description: 'The operator token of the server.' },
  hookSecret: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Hook-Secret',
    description:
      'The secret of the hooks. It may also be sent as `Authorization: Bearer …`, or kept: then the body is signed with ' +
      'it, as `X-Hook-Signature: sha256=…` (HMAC-SHA-256 of its bytes, in hex).',
  },
}

const securities: Readonly<Record<Declaration['access'], readonly object[]>> = {
  anyone: [],
  'api key': [{ apiKey: [] }],
  operator: [{ operator: [] }],
  'hook secret': [{ hookSecret: [] }],
}

function operationOf({ path, declaration }: DeclaredRoute): unknown {
  const { id, system, summary, description, access, body } = declaration
  const parameters = parametersOf(path, declaration)
  return {
    operationId: id,
    tags: [system.name],
    summary,
    ...(description === undefined ? {} : { description }),
    security: securities[access],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { [body.type ?? JSON_TYPE]: { schema: body.schema, example: body.example } },
          },
        }),
    responses: Object.fromEntries(
      Object.entries({ ...commonAnswers(declaration), ...declaration.answers }).map(([status, answer]) => [
        status,
        responseOf(Number(status), answer),
      ]),
    ),
  }
}

function parametersOf(path: string, { path: named = {}, query = {} }: Declaration): readonly unknown[] {
  const variables = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    ...parameterOf(named[name] ?? ''),
  }))
  const asked = Object.entries(query).map(([name, schema]) => ({
    name,
    in: 'query',
    ...(Type.IsOptional(schema) ? {} : { required: true }),
    ...parameterOf(schema),
  }))
  return [...variables, ...asked]
}

/** The description stands beside the schema of a parameter, not inside of it. */
function parameterOf(about: string | TSchema): { readonly description: unknown; readonly schema: Schema } {
  if (typeof about === 'string') return { description: about, schema: { type: 'string' } }
  const { description = '', ...schema } = about as { readonly description?: string }
  return { description, schema }
}

/** What every route of its kind may answer, so that no author has to remember it. */
function commonAnswers({ access, body, query, path }: Declaration): Record<number, AnswerDeclaration> {
  return {
    ...(body === undefined && query === undefined ? {} : { 400: { about: 'Invalid input, named field by field' } }),
    ...(access === 'anyone'
      ? {}
      : { 401: { about: 'No valid credential', headers: { 'WWW-Authenticate': 'Bearer' } } }),
    ...(access === 'api key' ? { 403: { about: 'The caller has no right to use this system' } } : {}),
    ...(path === undefined ? {} : { 404: { about: 'There is no such thing for this caller' } }),
    ...(body === undefined
      ? {}
      : {
          413: { about: 'The body is too large' },
          ...(body.type === undefined ? { 415: { about: 'The body is of another type than JSON' } } : {}),
        }),
    ...(access === 'anyone'
      ? {}
      : {
          500: { about: 'The server failed: the same request may be sent again with the same key' },
          503: {
            about: 'The store cannot be reached',
            headers: { 'Retry-After': 'In how many seconds to come back.' },
          },
        }),
  }
}

function responseOf(status: number, { about, schema, type, headers }: AnswerDeclaration): unknown {
  const problem = schema === undefined && status >= 400
  const shown = problem ? problemReference : schema
  return {
    description: about,
    ...(headers === undefined ? {} : { headers: headersOf(headers) }),
    ...(shown === undefined ? {} : { content: { [type ?? (problem ? PROBLEM : JSON_TYPE)]: { schema: shown } } }),
  }
}

function headersOf(headers: Readonly<Record<string, string>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
  )
}

/** Moves every schema that has a name to the components, and leaves a reference to it where it stood. */
function hoisted(value: unknown, components: Record<string, unknown>): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((each) => hoisted(each, components))
  const name = nameOf(value)
  const own = () =>
    Object.fromEntries(
      Object.entries(value)
        .filter(([key]) => key !== 'errorMessage')
        .map(([key, each]) => [key, hoisted(each, components)]),
    )
  if (name === undefined) return own()
  if (!(name in components)) {
    // The place is taken before its members are looked at, so that a schema may contain itself.
    components[name] = null
    components[name] = own() satisfies Schema
  }
  return { $ref: `#/components/schemas/${name}` }
}
