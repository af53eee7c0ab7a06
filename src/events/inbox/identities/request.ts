import type { IncomingMessage } from '../port.ts'
import { WebhookError } from './errors.ts'

/** What came over HTTP: the body exactly as it was sent, because signatures are made over its bytes. */
export interface HookRequest {
  readonly headers: HookHeaders
  readonly body: string | Uint8Array
}

/** As `fetch` has them, or as Node has them. */
export type HookHeaders =
  | { get(name: string): string | null; keys?(): Iterable<string> }
  | Readonly<Record<string, string | readonly string[] | undefined>>

/** One value, or null when there is none. Two values are refused, because it is unclear which one counts. */
export function headerOf(headers: HookHeaders, name: string): string | null {
  if (typeof headers.get === 'function') return headers.get(name)
  const values: string[] = []
  for (const [each, value] of Object.entries(headers)) {
    if (value === undefined || each.toLowerCase() !== name) continue
    if (typeof value === 'string') values.push(value)
    else values.push(...(value as readonly string[]))
  }
  if (values.length > 1) throw unreadable(name, 'is there more than once')
  return values[0] ?? null
}

export function neededHeader(headers: HookHeaders, name: string): string {
  const value = headerOf(headers, name)?.trim() ?? ''
  if (value === '') throw unreadable(name, 'is missing')
  return value
}

/** Of all headers there are, in lower case. */
export function headerNames(headers: HookHeaders): readonly string[] {
  if (typeof headers.get !== 'function') return Object.keys(headers).map((name) => name.toLowerCase())
  const { keys } = headers as { readonly keys?: () => Iterable<string> }
  return keys === undefined ? [] : [...keys.call(headers)]
}

/** Null for bytes that are no text. */
export function utf8OrNull(bytes: Uint8Array): string | null {
  try {
    return decoder.decode(bytes)
  } catch {
    return null
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function textOf(body: string | Uint8Array, part = 'body'): string {
  if (typeof body === 'string') return body
  try {
    return decoder.decode(body)
  } catch (cause) {
    throw unreadable(part, 'is not UTF-8', cause)
  }
}

export type JsonObject = Readonly<Record<string, unknown>>

export function objectOf(value: unknown, part: string): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw unreadable(part, 'is not an object')
  return value as JsonObject
}

export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw unreadable('body', 'is not JSON', cause)
  }
}

/** A required text that is not empty. */
export function textIn(object: JsonObject, name: string, part = name): string {
  const value = object[name]
  if (typeof value !== 'string' || value.trim() === '') throw unreadable(part, 'is missing')
  return value
}

export function unreadable(part: string, what: string, cause?: unknown): WebhookError<'unreadable_message'> {
  return new WebhookError('unreadable_message', `The \`${part}\` of the message ${what}.`, {
    details: { part },
    ...(cause === undefined ? {} : { cause }),
  })
}

/** HTTP neither counts deliveries nor numbers them. */
export function incoming(
  parts: Pick<IncomingMessage, 'id' | 'topic' | 'body'> & Partial<IncomingMessage>,
): IncomingMessage {
  return { key: null, sequence: null, headers: {}, deliveries: null, ...parts }
}
