import { DAY, HOUR, limits, MINUTE, SECOND } from '../../ledger/core/limits.ts'
import { hint } from './hint.ts'
import { type ArgumentFault, BadArguments } from './refusal.ts'

/** JSON Schema, as OpenAPI 3.1 uses it. */
export type Schema = Readonly<Record<string, unknown>>

/** One argument of a command: documented, read from JSON, and written as text in queries and on the command line. */
export interface Argument<T = unknown> {
  readonly about: string
  readonly schema: Schema
  readonly isRequired: boolean
  /** `flag` has no value, `list` may be repeated. */
  readonly form: 'text' | 'flag' | 'list'
  /** The JSON value that a text stands for. */
  fromText(text: string): unknown
  /** Other options of the command line that stand for this one with a value. */
  readonly spellings?: Readonly<Record<string, Spelling>>
  /** @throws Complaint */
  read(given: unknown): T
}

/** `--rerun` for `--to rerun`. */
export interface Spelling {
  readonly value: string
  /** The argument that a value behind the option is for; it may be left out. */
  readonly takes?: string
}

export type Arguments = Readonly<Record<string, Argument>>
export type Values<A extends Arguments> = { readonly [N in keyof A]: A[N] extends Argument<infer T> ? T : never }
export type Given = Readonly<Record<string, unknown>>

class Complaint extends Error {}

function argument<T>(about: string, schema: Schema, read: (given: unknown) => T): Argument<T> {
  return { about, schema, isRequired: true, form: 'text', fromText: (text) => text, read }
}

export function text(about: string): Argument<string> {
  return argument(about, { type: 'string', minLength: 1 }, (given) => {
    if (typeof given !== 'string' || given === '') throw new Complaint('is not a text')
    checkStorable(given)
    return given
  })
}

/** No store holds such a text, and PostgreSQL does not even compare with one. */
function checkStorable(given: string): void {
  if (given.includes('\0')) throw new Complaint('contains a NUL character, which nothing stored does')
  if (!given.isWellFormed()) throw new Complaint('contains half a surrogate pair, which nothing stored does')
}

/** As many as one page shows: an action leaves none of them out. */
const TEXTS_MOST = limits.pageRows

export function texts(about: string): Argument<readonly string[]> {
  const schema = { type: 'array', items: { type: 'string' }, maxItems: TEXTS_MOST }
  const read = (given: unknown) => {
    const isList = Array.isArray(given) && given.every((each) => typeof each === 'string')
    if (!isList || given.length > TEXTS_MOST) throw new Complaint(`is not a list of at most ${TEXTS_MOST} texts`)
    given.forEach(checkStorable)
    return given as readonly string[]
  }
  return { ...argument(about, schema, read), form: 'list' }
}

export function oneOf<const T extends string>(about: string, values: readonly T[]): Argument<T> {
  return argument(about, { type: 'string', enum: values }, (given) => {
    const found = values.find((each) => each === given)
    if (found !== undefined) return found
    throw new Complaint(`is none of ${values.join(', ')}.${typeof given === 'string' ? hint(given, values) : ''}`)
  })
}

export function whole(about: string, { least, most }: { least: number; most: number }): Argument<number> {
  const read = (given: unknown) => {
    if (Number.isSafeInteger(given) && Number(given) >= least && Number(given) <= most) return Number(given)
    throw new Complaint(`is not a whole number from ${least} to ${most}`)
  }
  const schema = { type: 'integer', minimum: least, maximum: most }
  return { ...argument(about, schema, read), fromText: numberOf }
}

/** A time of the store's clock, or how long before now: the command asks the store what that is. */
export type Since = { readonly at: number } | { readonly agoMs: number }

const units: Readonly<Record<string, number>> = { s: SECOND, m: MINUTE, h: HOUR, d: DAY }

export function since(about: string): Argument<Since> {
  const read = (given: unknown): Since => {
    if (Number.isSafeInteger(given)) return { at: Number(given) }
    const [, number, unit = ''] = /^(\d{1,6})([smhd])$/.exec(String(given)) ?? []
    const unitMs = units[unit]
    if (number === undefined || unitMs === undefined) throw new Complaint('is not a time like 12h or 7d')
    return { agoMs: Number(number) * unitMs }
  }
  const schema = { type: ['integer', 'string'], description: 'Milliseconds since 1970, or a time ago such as 12h.' }
  return { ...argument(about, schema, read), fromText: numberOf }
}

/** The same, or a date with its time zone. */
export function time(about: string): Argument<Since> {
  const known = since(about)
  const read = (given: unknown): Since => {
    const isDate = typeof given === 'string' && /^\d{4}-\d{2}-\d{2}T.+(Z|[+-]\d{2}:\d{2})$/.test(given)
    const at = isDate ? Date.parse(given) : Number.NaN
    if (Number.isNaN(at) && isDate) throw new Complaint('is not a date')
    return isDate ? { at } : known.read(given)
  }
  return { ...known, read }
}

export function json(about: string): Argument<unknown> {
  const fromText = (given: string) => {
    try {
      return JSON.parse(given) as unknown
    } catch {
      throw new Complaint(`is not JSON; a text is written as '"text"'`)
    }
  }
  return { ...argument(about, {}, (given) => given), fromText }
}

export function flag(about: string): Argument<boolean> {
  const read = (given: unknown) => {
    if (given === undefined) return false
    if (typeof given !== 'boolean') throw new Complaint('is neither true nor false')
    return given
  }
  const fromText = (given: string) => (given === 'true' ? true : given === 'false' ? false : given)
  return { ...argument(about, { type: 'boolean' }, read), form: 'flag', isRequired: false, fromText }
}

/** @param spellings options of the command line, without their dashes */
export function spelled<T>(of: Argument<T>, spellings: NonNullable<Argument['spellings']>): Argument<T> {
  return { ...of, spellings }
}

export function optional<T>(of: Argument<T>): Argument<T | undefined> {
  return { ...of, isRequired: false, read: (given) => (given === undefined ? undefined : of.read(given)) }
}

export function withDefault<T>(of: Argument<T>, value: T): Argument<T> {
  const schema = { ...of.schema, default: value }
  return { ...of, schema, isRequired: false, read: (given) => (given === undefined ? value : of.read(given)) }
}

function numberOf(given: string): unknown {
  return /^-?\d+$/.test(given) ? Number(given) : given
}

/** Checks all of them before anything is read or changed. @throws BadArguments */
export function readArguments<A extends Arguments>(of: A, given: Given): Values<A> {
  const faults: ArgumentFault[] = Object.keys(given)
    .filter((field) => !Object.hasOwn(of, field))
    .map((field) => ({ field, detail: `is not an argument here.${hint(field, Object.keys(of))}` }))
  const values = Object.entries(of).map(([field, each]) => {
    const value = Object.hasOwn(given, field) ? given[field] : undefined
    return [field, complained(field, faults, () => readOne(each, value))] as const
  })
  if (faults.length > 0) throw new BadArguments(faults)
  return Object.fromEntries(values) as Values<A>
}

function readOne(of: Argument, value: unknown): unknown {
  if (value === undefined && of.isRequired) throw new Complaint('is missing')
  return of.read(value)
}

/** What texts of a query or of the command line stand for; unknown names are left for `readArguments`. */
export function fromTexts(of: Arguments, given: Readonly<Record<string, string | undefined>>): Given {
  const faults: ArgumentFault[] = []
  const values = Object.entries(given).flatMap(([field, each]) => {
    if (each === undefined) return []
    const known = Object.hasOwn(of, field) ? of[field] : undefined
    return [[field, complained(field, faults, () => (known === undefined ? each : known.fromText(each)))] as const]
  })
  if (faults.length > 0) throw new BadArguments(faults)
  return Object.fromEntries(values)
}

function complained(field: string, faults: ArgumentFault[], read: () => unknown): unknown {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof Complaint)) throw error
    faults.push({ field, detail: error.message })
    return undefined
  }
}

/** The JSON Schema of all arguments together. */
export function schemaOf(of: Arguments): Schema {
  const entries = Object.entries(of)
  return {
    type: 'object',
    required: entries.filter(([, { isRequired }]) => isRequired).map(([name]) => name),
    properties: Object.fromEntries(
      entries.map(([name, { about, schema }]) => [name, { description: about, ...schema }]),
    ),
  }
}
