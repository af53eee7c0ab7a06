import { jsonText } from '../../ledger/core/json-text.ts'
import type { BodyAnswer, BodyQuestion } from './large-body.ts'

/** Requests and answers, free of any framework. Adapters translate; everything else speaks these words. */

export interface Incoming {
  readonly method: string
  /** Path and query as they came. */
  readonly target: string
  /** All values of a header in order; the name is lower-case. */
  header(name: string): readonly string[]
  /** All of them, for a request that is sent on. */
  headers(): HeaderList
  /** The original client, if the server in front knows it; the home of its key gets it, too. */
  readonly client?: string | undefined
  /** Asked only when it is needed, so that a request without a key keeps its unread body for the handler. */
  body(): IncomingBody | Promise<IncomingBody>
  /**
   * If the server in front can, a large body is parsed in another thread while other requests continue. Null for this
   * thread.
   */
  readonly askElsewhere?: (question: BodyQuestion) => Promise<BodyAnswer> | null
}

/** The bytes of a body; or, where a parser has eaten them, what it made of them. */
export type IncomingBody =
  | {
      readonly bytes: Uint8Array
      /** The content encoding is already undone, although the header still names it. */
      readonly inflated?: boolean
    }
  | { readonly parsed: unknown }

export const noBody = (): IncomingBody => ({ bytes: new Uint8Array() })

/** The request cannot be read; nothing was claimed for it. */
export class UnreadableBody extends Error {
  readonly status: number

  constructor(status: 400 | 413, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'UnreadableBody'
    this.status = status
  }
}

export function bodyTooLarge(maxBytes: number): UnreadableBody {
  return new UnreadableBody(413, `The body is larger than ${maxBytes} bytes.`)
}

export function bodyCut(cause?: unknown): UnreadableBody {
  return new UnreadableBody(400, 'The body never arrived whole.', { cause })
}

/** What an adapter reads at most of a request that is to be protected, unless its options say otherwise. */
export const MAX_BODY_BYTES = 1_024 * 1_024

/** Names in lower case; a name may stand there several times. */
export type HeaderList = readonly (readonly [name: string, value: string])[]

export interface Answer {
  readonly status: number
  readonly headers: HeaderList
  readonly body: Uint8Array
  /** The same body, where it is text: Node writes a text together with the head, and bytes behind it. */
  readonly text?: string | undefined
}

/** A body that is not kept: what is known of it. Both are null when its end was not seen. */
export interface MissingBody {
  readonly bytes: number | null
  readonly sha256: string | null
}

/** What a handler answered, as far as it fits; past the cap only its length and digest are known. */
export interface Captured {
  readonly status: number
  readonly headers: HeaderList
  readonly body: Uint8Array | MissingBody
  /** The same body, where its handler gave it as well-formed text. @default undefined */
  readonly text?: string | undefined
}

/** The header of a response that comes from the record. */
export const REPLAYED_HEADER = 'idempotent-replayed'

const encoder = new TextEncoder()

/** An answer with this value as JSON, of the given media type. */
export function jsonAnswer(status: number, type: string, value: unknown, headers: HeaderList = []): Answer {
  const body = encoder.encode(jsonText(value))
  return { status, headers: [['content-type', type], ['content-length', String(body.length)], ...headers], body }
}

export function headerOf(headers: HeaderList, name: string): string | null {
  for (const [each, value] of headers) if (each === name) return value
  return null
}

/** One entry per name, for frameworks that set a header with all of its values. */
export function headersByName(headers: HeaderList): readonly (readonly [name: string, value: string | string[]])[] {
  // Most answers name nothing twice, and are such a list already. Name by name, because a set for the few headers of an
  // answer costs more than the answer.
  for (let at = 1; at < headers.length; at++) {
    for (let before = 0; before < at; before++)
      if (headers[before]?.[0] === headers[at]?.[0]) return joinedByName(headers)
  }
  return headers
}

function joinedByName(headers: HeaderList): [name: string, value: string | string[]][] {
  const byName = new Map<string, string[]>()
  for (const [name, value] of headers) {
    const values = byName.get(name)
    if (values === undefined) byName.set(name, [value])
    else values.push(value)
  }
  return [...byName].map(([name, values]) => [name, values.length === 1 ? values.join() : values])
}

/** All values of a header as one. */
export function joined(value: string | readonly string[]): string {
  return typeof value === 'string' ? value : value.join(', ')
}

export function hasNoBody(status: number): boolean {
  return status === 204 || status === 304 || (status >= 100 && status < 200)
}

/** What streams say when the other side was closed: nothing of their own went wrong. */
export function isClosing(error: unknown): boolean {
  const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown }
  return name === 'AbortError' || code === 'ERR_STREAM_PREMATURE_CLOSE'
}
