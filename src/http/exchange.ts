/** Requests and answers, free of any framework. Adapters translate; everything else speaks these words. */

export interface Incoming {
  readonly method: string
  /** Path and query as they came. */
  readonly target: string
  /** All values of a header in order; the name is lower-case. */
  header(name: string): readonly string[]
  /** The bytes as they came, before anybody parsed them. */
  readonly body: Uint8Array
}

/** Names in lower case; a name may stand there several times. */
export type HeaderList = readonly (readonly [name: string, value: string])[]

export interface Answer {
  readonly status: number
  readonly headers: HeaderList
  readonly body: Uint8Array
}

/** What a handler answered, as far as it fits; past the cap only its length and digest are known. */
export interface Captured {
  readonly status: number
  readonly headers: HeaderList
  readonly body: Uint8Array | { readonly bytes: number; readonly sha256: string }
}

export const REPLAYED_HEADER = 'idempotent-replayed'

const encoder = new TextEncoder()

export function jsonAnswer(status: number, type: string, value: unknown, headers: HeaderList = []): Answer {
  const body = encoder.encode(JSON.stringify(value))
  return { status, headers: [['content-type', type], ['content-length', String(body.length)], ...headers], body }
}

export function headerOf(headers: HeaderList, name: string): string | null {
  for (const [each, value] of headers) if (each === name) return value
  return null
}
