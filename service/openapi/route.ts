import Type, { type TObject, type TSchema, type TString } from 'typebox'
import type { Declaration } from './declaration.ts'

type ParamsOf<P> = TObject<{ -readonly [Name in keyof P]: P[Name] extends string ? TString : P[Name] & TSchema }>

/** The schemas that Fastify checks a request by, and that type it. */
type RouteSchema<D extends Declaration> = (D extends { readonly path: infer P }
  ? { readonly params: ParamsOf<P> }
  : object) &
  (D extends { readonly query: infer Q }
    ? { readonly querystring: TObject<{ -readonly [N in keyof Q]: Q[N] & TSchema }> }
    : object) &
  (D extends { readonly body: { readonly schema: infer B } } ? { readonly body: B } : object)

interface RouteOptions<D extends Declaration> {
  readonly schema: RouteSchema<D>
  readonly config: { readonly declaration: D }
}

/** Options of a route whose requests are checked, typed and documented by one declaration. */
export function routeOptions<D extends Declaration>(declaration: D): RouteOptions<D> {
  const { path, query, body } = declaration
  const schema = {
    ...(path === undefined ? {} : { params: Type.Object(paramsOf(path)) }),
    ...(query === undefined ? {} : { querystring: Type.Object({ ...query }) }),
    ...(body === undefined ? {} : { body: body.schema }),
  }
  return { schema: schema as RouteSchema<D>, config: { declaration } }
}

function paramsOf(path: NonNullable<Declaration['path']>): Record<string, TSchema> {
  return Object.fromEntries(
    Object.entries(path).map(([name, about]) => [name, typeof about === 'string' ? Type.String() : about]),
  )
}
