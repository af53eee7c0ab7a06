import type { IncomingMessage } from '../port.ts'
import type { HookHeaders, HookRequest, JsonObject } from './request.ts'
import {
  headerNames,
  headerOf,
  incoming,
  jsonOf,
  neededHeader,
  objectOf,
  textIn,
  textOf,
  unreadable,
  utf8OrNull,
} from './request.ts'
import { bytesOfBase64 } from './signature.ts'

/** A batch of thousands is no batch any more. */
const MOST_EVENTS = 1_000

/**
 * CloudEvents 1.0 over HTTP, in structured, batched or binary mode. The id is the pair of `source` and `id`, as the
 * specification has it; the topic is the type, the key is the `partitionkey`, the body is the data. Data that are no text
 * are in base64, and the message says so in its header `data-encoding`.
 */
export function readCloudEvents({ headers, body }: HookRequest): readonly IncomingMessage[] {
  const [type = ''] = (headerOf(headers, 'content-type') ?? '').toLowerCase().split(';')
  switch (type.trim()) {
    case 'application/cloudevents+json':
      return [structured(objectOf(jsonOf(textOf(body)), 'body'))]
    case 'application/cloudevents-batch+json': {
      const events = jsonOf(textOf(body))
      if (!Array.isArray(events)) throw unreadable('body', 'is not a list of events')
      if (events.length > MOST_EVENTS) throw unreadable('body', `holds more than ${MOST_EVENTS} events`)
      return events.map((event: unknown, index) => structured(objectOf(event, `body[${index}]`)))
    }
    default:
      return [binary(headers, body)]
  }
}

function structured(event: JsonObject): IncomingMessage {
  const attributes: Record<string, string> = {}
  for (const [name, value] of Object.entries(event)) {
    if (name === 'data' || name === 'data_base64' || value === null) continue
    // The specification has no others; what is nested may be too deep, or too odd, to become a text at all.
    if (typeof value === 'object') throw unreadable(name, 'is neither a text, a number nor a truth value')
    attributes[`ce-${name}`] = String(value)
  }
  return messageOf(event, attributes, dataOf(event))
}

/** Data as a message has them: text; or bytes that are none, in base64, which its `data-encoding` says. */
interface Data {
  readonly text: string
  readonly encoding: 'base64' | null
}

function dataOfBytes(body: string | Uint8Array): Data {
  if (typeof body === 'string') return { text: body, encoding: null }
  const text = utf8OrNull(body)
  return text === null ? { text: Buffer.from(body).toString('base64'), encoding: 'base64' } : { text, encoding: null }
}

/** The same text as the body of the event has in binary mode, so that it is the same message whichever way it comes. */
function dataOf({ data, data_base64: encoded, datacontenttype: type }: JsonObject): Data {
  if (encoded !== undefined && encoded !== null) {
    if (data !== undefined) throw unreadable('data', 'stands beside `data_base64`')
    const bytes = typeof encoded === 'string' ? bytesOfBase64(encoded) : null
    if (bytes === null) throw unreadable('data_base64', 'is not base64')
    return dataOfBytes(bytes)
  }
  if (typeof data === 'string' && typeof type === 'string' && !isJson(type)) return { text: data, encoding: null }
  try {
    return { text: JSON.stringify(data ?? null), encoding: null }
  } catch (cause) {
    throw unreadable('data', 'is nested too deeply', cause)
  }
}

function isJson(contentType: string): boolean {
  const [type = ''] = contentType.split(';')
  return /^[^/]+\/([^/]+\+)?json$/i.test(type.trim())
}

/** Attributes are headers, and what is not visible ASCII in them is percent-encoded. */
function binary(headers: HookHeaders, body: string | Uint8Array): IncomingMessage {
  for (const name of ['specversion', 'id', 'source', 'type']) neededHeader(headers, `ce-${name}`)
  const attributes: [string, string][] = []
  // Extensions too: the producer may have put a reply address into one.
  for (const name of headerNames(headers)) {
    const value = /^ce-[a-z0-9]{1,64}$/.test(name) ? headerOf(headers, name) : null
    if (value !== null) attributes.push([name, decoded(value, name)])
  }
  const event = Object.fromEntries(attributes.map(([name, value]) => [name.slice('ce-'.length), value]))
  return messageOf(event, Object.fromEntries(attributes), body.length === 0 ? NO_DATA : dataOfBytes(body))
}

const NO_DATA: Data = { text: 'null', encoding: null }

function decoded(value: string, part: string): string {
  try {
    return decodeURIComponent(value)
  } catch (cause) {
    throw unreadable(part, 'is not percent-encoded UTF-8', cause)
  }
}

function messageOf(event: JsonObject, attributes: Record<string, string>, data: Data): IncomingMessage {
  const version = textIn(event, 'specversion')
  if (!/^1\.\d+$/.test(version)) throw unreadable('specversion', `is ${version}, and only 1.x is known`)
  const { partitionkey } = event
  const key = typeof partitionkey === 'string' && partitionkey !== '' ? partitionkey : null
  // As JSON, so that no source and id can be taken for another pair.
  const id = JSON.stringify([textIn(event, 'source'), textIn(event, 'id')])
  const headers = data.encoding === null ? attributes : { ...attributes, 'data-encoding': data.encoding }
  return incoming({ id, topic: textIn(event, 'type'), key, headers, body: data.text })
}
