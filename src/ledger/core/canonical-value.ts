import { canonicalNumber } from './canonical-number.ts'
import { CanonicalError, type CanonicalReason, MAX_JSON_DEPTH } from './canonical-rules.ts'

/** Where a walk is: the containers around it, and the member or index that it took in each. Stale beyond its depth. */
interface Walk {
  readonly above: object[]
  readonly steps: (string | number)[]
}

/** Up to here a loop that finds nothing to escape beats JSON.stringify; most names and values are short. */
const LOOP_CHARS = 64

/** Up to here insertion sort beats the built-in sort, and names that are in order already cost one comparison each. */
const INSERTION_SORT_NAMES = 16

/**
 * The canonical text of a value in memory: what `canonicalJson` gives for its JSON. Members that are `undefined` are
 * left out, `toJSON` is honoured, a bigint is an exact integer. What JSON would drop, blur or empty without a word is
 * refused with its path, because two different inputs must not look the same.
 */
export function canonicalValue(value: unknown): string {
  const walk: Walk = { above: [], steps: [] }
  return textOf(value, 0, walk) ?? refuse('unsupported_type', 0, walk, 'undefined')
}

/** @returns `undefined` for what is left out of an object */
function textOf(value: unknown, depth: number, walk: Walk): string | undefined {
  switch (typeof value) {
    case 'string':
      return stringText(value) ?? refuse('lone_surrogate', depth, walk)
    case 'number':
      // The language's own text is RFC 8785's, also for -0.
      return Number.isFinite(value) ? String(value) : refuse('number_out_of_range', depth, walk)
    case 'boolean':
      return value ? 'true' : 'false'
    case 'bigint':
      return canonicalNumber(String(value)) ?? refuse('number_out_of_range', depth, walk)
    case 'object':
      return value === null ? 'null' : objectText(value, depth, walk)
    case 'undefined':
      return undefined
    case 'function':
    case 'symbol':
      return refuse('unsupported_type', depth, walk, typeof value)
  }
}

/** The text of a string, or `null` if it is none: JSON.stringify would escape half a pair instead of refusing it. */
function stringText(text: string): string | null {
  if (text.length <= LOOP_CHARS && isPlainText(text)) return `"${text}"`
  return text.isWellFormed() ? JSON.stringify(text) : null
}

function isPlainText(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit < 0x20 || unit === 0x22 || unit === 0x5c || unit >= 0xd800) return false
  }
  return true
}

function objectText(value: object, depth: number, walk: Walk): string | undefined {
  // Before toJSON, because a Buffer has one: bytes are not JSON, and their owner must choose an encoding.
  if (ArrayBuffer.isView(value)) refuse('unsupported_type', depth, walk, tagOf(value))
  const toJson = (value as { readonly toJSON?: unknown }).toJSON
  if (typeof toJson !== 'function') return structureText(value, depth, walk)

  const given: unknown = toJson.call(value, String(walk.steps[depth - 1] ?? ''))
  // An invalid Date would be the same as null.
  if (given === null && tagOf(value) === 'Date') refuse('unsupported_type', depth, walk, 'an invalid Date')
  // As in JSON.stringify, toJSON is asked once: its answer is taken as it is.
  return typeof given === 'object' && given !== null ? structureText(given, depth, walk) : textOf(given, depth, walk)
}

function structureText(value: object, depth: number, walk: Walk): string {
  for (let level = 0; level < depth; level++) if (walk.above[level] === value) refuse('cycle', depth, walk)
  if (depth >= MAX_JSON_DEPTH) refuse('too_deep', depth, walk)
  walk.above[depth] = value
  if (Array.isArray(value)) return arrayText(value, depth, walk)
  if (!isPlain(value)) refuse('unsupported_type', depth, walk, `${tagOf(value)} is no plain object and has no toJSON`)
  return membersText(value as Readonly<Record<string, unknown>>, depth, walk)
}

function arrayText(items: readonly unknown[], depth: number, walk: Walk): string {
  let text = '['
  for (let index = 0; index < items.length; index++) {
    walk.steps[depth] = index
    // JSON would write null here, and an item that is missing is not an item that is null.
    const item = textOf(items[index], depth + 1, walk) ?? refuse('unsupported_type', depth + 1, walk, 'undefined')
    text += index === 0 ? item : `,${item}`
  }
  return `${text}]`
}

function membersText(members: Readonly<Record<string, unknown>>, depth: number, walk: Walk): string {
  const names = Object.keys(members)
  sortNames(names)
  let text = '{'
  for (const name of names) {
    walk.steps[depth] = name
    const value = textOf(members[name], depth + 1, walk)
    if (value === undefined) continue
    const nameText = stringText(name) ?? refuse('lone_surrogate', depth + 1, walk)
    text += text.length === 1 ? `${nameText}:${value}` : `,${nameText}:${value}`
  }
  return `${text}}`
}

/** Names by UTF-16 code units, as RFC 8785 wants it, which is also the default order of sort. */
function sortNames(names: string[]): void {
  if (names.length > INSERTION_SORT_NAMES) {
    names.sort()
    return
  }
  for (let at = 1; at < names.length; at++) {
    const name = names[at] as string
    let hole = at
    while (hole > 0 && (names[hole - 1] as string) > name) {
      names[hole] = names[hole - 1] as string
      hole--
    }
    names[hole] = name
  }
}

/** Maps, errors, class instances and the like keep their content where Object.keys does not see it. */
export function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  // Objects of another realm have their own Object.prototype, which is known by having no prototype itself.
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null
}

function tagOf(value: object): string {
  return Object.prototype.toString.call(value).slice(8, -1)
}

function refuse(reason: CanonicalReason, depth: number, walk: Walk, detail?: string): never {
  let path = '$'
  for (const step of walk.steps.slice(0, depth)) {
    if (typeof step === 'number') path += `[${step}]`
    else path += /^[A-Za-z_$][\w$]*$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`
  }
  throw new CanonicalError(reason, { path }, detail)
}
