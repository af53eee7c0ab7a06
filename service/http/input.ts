import type { FastifyTypeProvider } from 'fastify'
import Type, { type Static, type TObject, type TSchema } from 'typebox'
import { Compile, Errors, type Validator } from 'typebox/schema'
import { type FieldError, sentenceOf } from './problem.ts'
import { unstorable } from './text.ts'

/** A request body as JSON, before its members have been checked. */
export type Fields = Readonly<Record<string, unknown>>

export type Checked<T> = { readonly value: T } | { readonly errors: readonly FieldError[] }

/** Of one answer: enough to correct a form at once, and few enough that a body of a million wrong items stays cheap. */
const ERRORS_MOST = 100

/** Types `request.body`, `request.query` and `request.params` by the schemas of the route. */
export interface InputTypes extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? Static<this['schema']> : unknown
}

/** Thrown by the validation of a route, which runs after authentication and before a key is claimed. */
export class InvalidInput extends Error {
  readonly errors: readonly FieldError[]
  readonly statusCode = 400

  constructor(errors: readonly FieldError[]) {
    super(sentenceOf(errors))
    this.errors = errors
  }
}

/** Fastify's validator compiler: every route is checked by the schemas that document it. */
export function inputValidator({ schema, httpPart }: { readonly schema: unknown; readonly httpPart?: string }) {
  const declared = schema as TSchema
  // At the start of the server, so that the first request is not slower than the others.
  validatorOf(declared)
  return (given: unknown): { readonly value: unknown } | { readonly error: InvalidInput } => {
    const value = httpPart === 'querystring' ? withNumbers(declared as TObject, given) : given
    const result = checked(declared, value)
    return 'errors' in result ? { error: new InvalidInput(result.errors) } : result
  }
}

const validators = new WeakMap<TSchema, Validator>()

/** Compiled once; it takes a few milliseconds. */
function validatorOf(schema: TSchema): Validator {
  let validator = validators.get(schema)
  if (validator === undefined) {
    validator = Compile(schema) as unknown as Validator
    validators.set(schema, validator)
  }
  return validator
}

/** Names every field that is wrong, so that all of them can be corrected at once. */
export function checked<S extends TSchema>(schema: S, value: unknown): Checked<Static<S>> {
  if (validatorOf(schema).Check(value)) return { value: value as Static<S> }
  const errors: FieldError[] = []
  explain(schema, value, '', errors)
  return { errors: errors.length > 0 ? errors : [{ field: 'body', detail: 'is not valid' }] }
}

/** Query strings have no numbers: what reads as one becomes one, and everything else is left for the schema to refuse. */
function withNumbers({ properties }: TObject, query: unknown): Fields {
  return Object.fromEntries(
    Object.entries({ ...(query as Fields) }).map(([name, text]) => {
      const isNumber = partsOf(properties[name] ?? {}).type === 'integer' && typeof text === 'string' && text !== ''
      return [name, isNumber ? Number(text) : text]
    }),
  )
}

type Complaint = string | readonly FieldError[] | null
type Rule = (value: never) => Complaint

/** By the check that TypeBox keeps in the schema: a copy of a schema keeps its check. */
const rules = new WeakMap<object, Rule>()

/**
 * Adds a rule that JSON Schema cannot express. It answers what is wrong with the value, or null. The rule of an object sees
 * members that have not been checked yet, and may name several of them.
 */
export function ruled<S extends TSchema, V = Static<S>>(schema: S, complaint: (value: V) => Complaint): S {
  const holds = (value: unknown) => {
    const found = complaint(value as V)
    return found === null || (typeof found !== 'string' && found.length === 0)
  }
  rules.set(holds, complaint)
  return Type.Refine(schema, holds) as S
}

/** A text that has to be filled in and that every store and channel can hold. Its length is counted in characters. */
export function filledText(maxLength: number, options: { readonly description?: string } = {}) {
  return ruled(Type.String({ minLength: 1, maxLength, ...options }), notFilled)
}

export function optionalText(maxLength: number) {
  const schema = Type.Unsafe<string | null>({ type: ['string', 'null'], minLength: 1, maxLength })
  return Type.Optional(ruled(schema, (text) => (text === null ? null : notFilled(text))))
}

function notFilled(text: string): string | null {
  return text.trim() === '' ? 'is blank' : unstorable(text)
}

/** One of a few words. */
export function oneOf<const V extends readonly string[]>(values: V, options: object = {}) {
  return Type.Unsafe<V[number]>({ type: 'string', enum: values, ...options })
}

/** As much of a schema as sentences are made of. */
interface Parts {
  readonly type?: string | readonly string[]
  readonly title?: string
  readonly properties?: Readonly<Record<string, TSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: unknown
  readonly items?: TSchema
  readonly minItems?: number
  readonly maxItems?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly oneOf?: readonly TSchema[]
  readonly enum?: readonly unknown[]
  /** The sentence for a value that does not fit, instead of the usual one. Not part of the document. */
  readonly errorMessage?: string
}

function partsOf(schema: TSchema): Parts {
  return schema
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function explain(schema: TSchema, value: unknown, field: string, errors: FieldError[]): void {
  if (errors.length >= ERRORS_MOST) return
  const { properties, items, oneOf: shapes, errorMessage } = partsOf(schema)
  if (shapes !== undefined && isFields(value)) explainShape(shapes, value, field, errors)
  else if (properties !== undefined && isFields(value)) explainObject(schema, value, field, errors)
  else if (items !== undefined && Array.isArray(value)) explainList(schema, value, field, errors)
  else {
    const [, [error]] = Errors(schema, value)
    if (error === undefined) return
    const detail =
      error.keyword === '~refine' ? complaintOf(schema, value) : (errorMessage ?? usualSentence(schema, error))
    if (typeof detail === 'string') errors.push({ field: field === '' ? 'body' : field, detail })
  }
}

function complaintOf(schema: TSchema, value: unknown): Complaint {
  const { '~refine': refinements = [] } = schema as { '~refine'?: readonly { readonly check: object }[] }
  for (const { check } of refinements) {
    const complaint = rules.get(check)?.(value as never) ?? null
    if (complaint !== null && complaint.length > 0) return complaint
  }
  return null
}

function inside(field: string, name: string): string {
  return field === '' || name.startsWith('[') ? `${field}${name}` : `${field}.${name}`
}

/** Unknown members first, then what the members are together, then each of them in the order of the schema. */
function explainObject(schema: TSchema, value: Fields, field: string, errors: FieldError[]): void {
  const { properties = {}, required = [], additionalProperties, title = 'this command' } = partsOf(schema)
  for (const name of additionalProperties === false ? Object.keys(value) : []) {
    if (errors.length >= ERRORS_MOST) return
    if (!Object.hasOwn(properties, name)) {
      errors.push({ field: inside(field, name), detail: `is not a field of ${title}` })
    }
  }
  addComplaint(complaintOf(schema, value), field, errors)
  for (const [name, member] of Object.entries(properties)) {
    const given = Object.hasOwn(value, name) ? value[name] : undefined
    if (given !== undefined) explain(member, given, inside(field, name), errors)
    else if (required.includes(name)) errors.push({ field: inside(field, name), detail: 'is missing' })
  }
}

function explainList(schema: TSchema, value: readonly unknown[], field: string, errors: FieldError[]): void {
  const { items = {}, minItems = 0, maxItems = Number.POSITIVE_INFINITY, errorMessage } = partsOf(schema)
  if (value.length < minItems || value.length > maxItems) {
    const usual = value.length < minItems ? 'is empty' : `has more than ${maxItems} items`
    errors.push({ field, detail: errorMessage ?? usual })
    return
  }
  for (const [at, item] of value.entries()) {
    if (errors.length >= ERRORS_MOST) return
    explain(items, item, `${field}[${at}]`, errors)
  }
  addComplaint(complaintOf(schema, value), field, errors)
}

function addComplaint(complaint: Complaint, field: string, errors: FieldError[]): void {
  if (complaint === null) return
  if (typeof complaint === 'string') errors.push({ field: field === '' ? 'body' : field, detail: complaint })
  else for (const each of complaint) errors.push({ field: inside(field, each.field), detail: each.detail })
}

/** One of several shapes, distinguished by `type`: the others do not help a caller that has chosen one. */
function explainShape(shapes: readonly TSchema[], value: Fields, field: string, errors: FieldError[]): void {
  const typeOf = (shape: TSchema) => partsOf(partsOf(shape).properties?.['type'] ?? {}).enum?.[0]
  const chosen = shapes.find((shape) => typeOf(shape) === value['type'])
  if (chosen !== undefined) explain(chosen, value, field, errors)
  else errors.push({ field: inside(field, 'type'), detail: `is none of ${shapes.map(typeOf).join(', ')}` })
}

const kinds: Readonly<Record<string, string>> = {
  string: 'is not a string',
  boolean: 'is neither true nor false',
  array: 'is not a list',
  object: 'is not a JSON object',
}

function usualSentence(schema: TSchema, error: ReturnType<typeof Errors>[1][number]): string {
  const { type, minimum, maximum, oneOf: shapes } = partsOf(schema)
  const kind = shapes === undefined ? [type].flat()[0] : 'object'
  if (kind === 'integer') return `is not a whole number from ${minimum} to ${maximum}`
  switch (error.keyword) {
    case 'type':
      return kinds[kind ?? ''] ?? `is not of type ${kind}`
    case 'minLength':
      return 'is blank'
    case 'maxLength':
      return `is longer than ${error.params.limit} characters`
    case 'enum':
      return `is none of ${error.params.allowedValues.filter((value) => value !== null).join(', ')}`
    case 'pattern':
      return `does not match ${String(error.params.pattern)}`
    default:
      return error.message
  }
}
