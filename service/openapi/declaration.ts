import type { BatchRoute, CommandRoute, NaturalNotes } from 'onceonly/openapi'
import Type, { type Static, type TObject, type TOptional, type TSchema } from 'typebox'

/** JSON Schema of 2020-12, as OpenAPI 3.1 uses it. TypeBox gives it a type. */
export type Schema = TSchema

/** One of the systems of this server: a chapter of its documentation. */
export interface System {
  readonly name: string
  readonly about: string
}

/**
 * What a route says about itself. The OpenAPI document, the page at `/docs` and the design checklist are made of nothing
 * else, and `routeOptions` checks and types requests by the same schemas.
 */
export interface Declaration {
  /** Unique; of a protected command, the name of its operation. */
  readonly id: string
  readonly system: System
  readonly summary: string
  readonly description?: string
  /** The server checks API keys and the operator token; a route with the hook secret checks that itself. */
  readonly access: 'anyone' | 'api key' | 'operator' | 'hook secret'
  /** Operators may also come with a session of the console, which checks them itself. */
  readonly hasSessions?: true
  /** What each variable of the path means; a schema, where only some texts are allowed. */
  readonly path?: Readonly<Record<string, string | TSchema>>
  readonly query?: Readonly<Record<string, TSchema>>
  /** JSON, unless it says otherwise. */
  readonly body?: { readonly schema: TSchema; readonly example: unknown; readonly type?: string }
  /** By status. What authentication, bad input and a store that is away are answered is added for every route. */
  readonly answers: Readonly<Record<number, AnswerDeclaration>>
  /** What makes it safe to repeat: every route that changes something has it. */
  readonly repeat?: Repeat
}

export interface AnswerDeclaration {
  readonly about: string
  /** Left out: no body, or, of an error, a problem document. */
  readonly schema?: Schema
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
}

export type Repeat =
  | Pick<CommandRoute, 'kind' | 'definition'>
  | Pick<BatchRoute, 'kind' | 'definition'>
  | { readonly kind: 'natural'; readonly about: NaturalNotes }

/** A route that needs no key, because repeating it changes nothing. */
export function natural(id: string, about: Omit<NaturalNotes, 'documentation'>): Repeat {
  return { kind: 'natural', about: { ...about, documentation: `/docs#${id}` } }
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** `page`: for people, not for programs, so that the document leaves it out. */
    declaration?: Declaration | 'page'
  }
}

const names = new WeakMap<object, string>()

/** A schema that stands in the document once, under its name, wherever it is used. */
export function named<S extends object>(name: string, schema: S): S {
  names.set(schema, name)
  return schema
}

export function nameOf(schema: object): string | undefined {
  return names.get(schema)
}

type Members<P, O> = { -readonly [Name in keyof P]: Name extends O ? TOptional<P[Name] & TSchema> : P[Name] & TSchema }

/** An object all of whose members are always there, unless they are named as optional. */
export function record<P extends Readonly<Record<string, Schema>>, const O extends keyof P = never>(
  properties: P,
  optional: readonly O[] = [],
): TObject<Members<P, O>> {
  const isOptional = new Set<unknown>(optional)
  const members = Object.entries(properties).map(([name, schema]) => [
    name,
    isOptional.has(name) ? Type.Optional(schema) : schema,
  ])
  return Type.Object(Object.fromEntries(members) as Members<P, O>)
}

/** Read-only, as answers are. */
export function list<S extends Schema>(items: S, options: object = {}) {
  return Type.Unsafe<readonly Static<S>[]>({ type: 'array', ...options, items })
}

export const text = Type.String()
export const textOrNull = Type.Unsafe<string | null>({ type: ['string', 'null'] })
export const instant = Type.String({ format: 'date-time' })
export const instantOrNull = Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time' })
export const count = Type.Integer({ minimum: 0 })
