import type { IncomingMessage } from '../port.ts'
import type { HookHeaders, HookRequest, JsonObject } from './request.ts'
import { headerOf, incoming, jsonOf, neededHeader, objectOf, textIn, textOf, unreadable } from './request.ts'
import { bytesOfBase64 } from './signature.ts'

/** A batch of thousands is no batch any more. */
const MOST_EVENTS = 1_000

/**
 * CloudEvents 1.0 over HTTP, in structured, batched or binary mode. The id is the pair of `source` and `id`, as the
 * specification has it; the topic is the type, the key is the `partitionkey`, the body is the data.
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
      return [binary(headers, textOf(body))]
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

/** The same text as the body of the event has in binary mode, so that it is the same message whichever way it comes. */
function dataOf({ data, data_base64: encoded, datacontenttype: type }: JsonObject): string {
  if (encoded !== undefined && encoded !== null) {
    if (data !== undefined) throw unreadable('data', 'stands beside `data_base64`')
    const bytes = typeof encoded === 'string' ? bytesOfBase64(encoded) : null
    if (bytes === null) throw unreadable('data_base64', 'is not base64')
    return textOf(bytes, 'data_base64')
  }
  if (typeof data === 'string' && typeof type === 'string' && !isJson(type)) return data
  try {
    return JSON.stringify(data ?? null)
  } catch (cause) {
    throw unreadable('data', 'is nested too deeply', cause)
  }
}

function isJson(contentType: string): boolean {
  const [type = ''] = contentType.split(';')
  return /^[^/]+\/([^/]+\+)?json$/i.test(type.trim())
}

/** Attributes are headers, and what is not visible ASCII in them is percent-encoded. */
function binary(headers: HookHeaders, body: string): IncomingMessage {
  const attributes: Record<string, string> = {}
  const event: Record<string, unknown> = {}
  for (const name of ['specversion', 'id', 'source', 'type', 'partitionkey', 'subject', 'time'] as const) {
    const needed = name === 'specversion' || name === 'id' || name === 'source' || name === 'type'
    const value = needed ? neededHeader(headers, `ce-${name}`) : headerOf(headers, `ce-${name}`)
    if (value === null) continue
    event[name] = decoded(value, `ce-${name}`)
    attributes[`ce-${name}`] = String(event[name])
  }
  return messageOf(event, attributes, body === '' ? 'null' : body)
}

function decoded(value: string, part: string): string {
  try {
    return decodeURIComponent(value)
  } catch (cause) {
    throw unreadable(part, 'is not percent-encoded UTF-8', cause)
  }
}

function messageOf(event: JsonObject, headers: Record<string, string>, body: string): IncomingMessage {
  const version = textIn(event, 'specversion')
  if (!/^1\.\d+$/.test(version)) throw unreadable('specversion', `is ${version}, and only 1.x is known`)
  const { partitionkey } = event
  const key = typeof partitionkey === 'string' && partitionkey !== '' ? partitionkey : null
  // As JSON, so that no source and id can be taken for another pair.
  const id = JSON.stringify([textIn(event, 'source'), textIn(event, 'id')])
  return incoming({ id, topic: textIn(event, 'type'), key, headers, body })
}
