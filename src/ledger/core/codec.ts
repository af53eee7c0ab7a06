import { isPlain } from './canonical-value.ts'
import { OnceError } from './errors.ts'

/**
 * Outcomes as text. Plain JSON stays plain JSON; what JSON cannot say is written as `{ "$once": kind, … }`, so that a
 * replay gives back the dates, bytes and big integers of the first answer.
 */

const TAG = '$once'
const MAX_DEPTH = 256

type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

/** Null where the value cannot be stored, with the place and the reason. */
export type Encoded = { readonly text: string } | { readonly problem: string }

export function encodeValue(value: unknown): Encoded {
  // The undefined result of a command without an answer is the most common value of all.
  if (value === undefined) return { text: `{"${TAG}":"undefined"}` }
  // Paths are built only for error messages: they would take as long as all the rest.
  const encoded = encodeWalking(value, null)
  return 'text' in encoded ? encoded : encodeWalking(value, '$')
}

function encodeWalking(value: unknown, path: Path): Encoded {
  try {
    return { text: JSON.stringify(toJson(value, path, 0)) }
  } catch (error) {
    if (error instanceof NotStorable) return { problem: error.message }
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}

export function decodeValue(text: string): unknown {
  try {
    const json = JSON.parse(text) as Json
    // Text without a tag, also without one in disguise, is what it says: most outcomes need no second walk.
    return text.includes(TAG) || text.includes('\\u') ? fromJson(json) : json
  } catch (cause) {
    throw new OnceError('outcome_not_stored', 'The stored outcome cannot be read.', { cause })
  }
}

class NotStorable extends Error {}

/** Where a value is, for error messages; null while none is needed. */
type Path = string | null

function toJson(value: unknown, path: Path, depth: number): Json {
  if (depth > MAX_DEPTH) throw new NotStorable(`${path} is nested too deeply or refers to itself`)
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value
    case 'number':
      if (Number.isFinite(value) && !Object.is(value, -0)) return value
      return { [TAG]: 'number', is: Object.is(value, -0) ? '-0' : String(value) }
    case 'undefined':
      return { [TAG]: 'undefined' }
    case 'bigint':
      return { [TAG]: 'bigint', is: value.toString() }
    case 'function':
    case 'symbol':
      throw new NotStorable(`${path} is a ${typeof value}`)
    case 'object':
      return value === null ? null : objectToJson(value, path, depth + 1)
  }
}

function objectToJson(value: object, path: Path, depth: number): Json {
  // Not `map`, which leaves holes as they are, and JSON would make them null.
  if (Array.isArray(value)) {
    const items: Json[] = []
    for (let index = 0; index < value.length; index++) {
      items.push(toJson(value[index], path && `${path}[${index}]`, depth))
    }
    return items
  }
  if (value instanceof Date) return { [TAG]: 'date', is: Number.isNaN(value.getTime()) ? null : value.toISOString() }
  if (value instanceof Uint8Array) {
    const is = bytesToBase64(value)
    return maker?.isBuffer(value) === true ? { [TAG]: 'bytes', is, of: 'Buffer' } : { [TAG]: 'bytes', is }
  }
  // Other buffers would be stored as empty objects, and lose what they hold without a word.
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
    throw new NotStorable(`${path} is a ${value.constructor.name}`)
  if (value instanceof Map) {
    return { [TAG]: 'map', is: [...value].map((pair, index) => toJson(pair, path && `${path}<${index}>`, depth)) }
  }
  if (value instanceof Set) {
    return { [TAG]: 'set', is: [...value].map((each, index) => toJson(each, path && `${path}<${index}>`, depth)) }
  }
  if ('toJSON' in value && typeof value.toJSON === 'function') return toJson(value.toJSON(), path, depth)
  // What a class keeps in private fields or accessors would be lost, and a replay would answer with an empty object.
  if (!isPlain(value)) throw new NotStorable(`${path} is a ${className(value)}, which is no plain data`)
  const json: { [name: string]: Json } = {}
  let escapes = false
  for (const name of Object.keys(value)) {
    const each = (value as { readonly [name: string]: unknown })[name]
    // As in JSON: a member that is undefined is a member that is not there.
    if (each === undefined) continue
    const member = toJson(each, path && `${path}.${name}`, depth)
    if (name === '__proto__') setOwn(json, name, member)
    else json[name] = member
    escapes ||= escaped.test(name)
  }
  if (TAG in json) return { [TAG]: 'object', is: json }
  // Some versions of V8 misread an escaped member name once they have met the name `\\`; strings are read rightly.
  return escapes ? { [TAG]: 'members', is: Object.entries(json) } : json
}

function className(value: object): string {
  const { constructor } = value
  return typeof constructor === 'function' && constructor.name !== '' ? constructor.name : 'class instance'
}

/** Node's bytes. This folder runs also where there is no Node: there they are a Uint8Array. */
interface BufferMaker {
  isBuffer(value: unknown): boolean
  from(buffer: ArrayBufferLike, offset: number, length: number): Uint8Array & { toString(encoding: 'base64'): string }
  from(text: string, encoding: 'base64'): Uint8Array
}
const { Buffer: maker } = globalThis as { readonly Buffer?: BufferMaker }

// oxlint-disable-next-line no-control-regex -- these are the characters that JSON escapes.
const escaped = /[\u0000-\u001f"\\]/

/** A member may be called `__proto__`; assigning it would lose it. */
function setOwn<T>(target: { [name: string]: T }, name: string, value: T): void {
  Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true })
}

function fromJson(json: Json): unknown {
  if (typeof json !== 'object' || json === null) return json
  if (Array.isArray(json)) return json.map(fromJson)
  if (Object.hasOwn(json, TAG)) return fromTag(json)
  return members(json)
}

function members(json: { [name: string]: Json }): { [name: string]: unknown } {
  const value: { [name: string]: unknown } = {}
  for (const name of Object.keys(json)) {
    const member = fromJson(json[name] as Json)
    if (name === '__proto__') setOwn(value, name, member)
    else value[name] = member
  }
  return value
}

function fromTag(json: { [name: string]: Json }): unknown {
  const is = json['is'] as Json
  switch (json[TAG]) {
    case 'undefined':
      return undefined
    case 'number':
      return Number(is)
    case 'bigint':
      return BigInt(is as string)
    case 'date':
      return new Date(is === null ? Number.NaN : (is as string))
    case 'bytes':
      return base64ToBytes(is as string, json['of'] === 'Buffer')
    case 'map':
      return new Map((is as Json[]).map((pair) => fromJson(pair) as [unknown, unknown]))
    case 'set':
      return new Set((is as Json[]).map(fromJson))
    case 'members':
      return members(Object.fromEntries(is as [string, Json][]))
    case 'object':
      return members(is as { [name: string]: Json })
    default:
      throw new Error(`unknown tag ${JSON.stringify(json[TAG])}`)
  }
}

const CHUNK_BYTES = 0x8000

export function bytesToBase64(bytes: Uint8Array): string {
  if (maker !== undefined) return maker.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
  let binary = ''
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    binary += String.fromCharCode(...bytes.subarray(at, at + CHUNK_BYTES))
  }
  return btoa(binary)
}

function base64ToBytes(text: string, asBuffer: boolean): Uint8Array {
  if (maker !== undefined) return asBuffer ? maker.from(text, 'base64') : new Uint8Array(maker.from(text, 'base64'))
  const binary = atob(text)
  const bytes = new Uint8Array(binary.length)
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at)
  return bytes
}
