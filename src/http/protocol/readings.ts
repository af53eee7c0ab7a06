import type { Incoming } from './exchange.ts'

/** A request under a key, in one spelling. */
export interface KeyedRequest {
  readonly kind: 'keyed'
  readonly key: string
  readonly operation: string
  /** What makes it the same request: in the current form of the route, then in its older ones. */
  readonly fingerprints: readonly [string, ...string[]]
  /** Its body as it came, where that may be compared when it comes again. */
  readonly bytes: Uint8Array | null
}

/** A class, and not a literal: V8 would keep the body of each request until the next full collection. */
export class Keyed implements KeyedRequest {
  declare readonly kind: 'keyed'
  declare readonly key: string
  declare readonly operation: string
  declare readonly fingerprints: KeyedRequest['fingerprints']
  declare readonly bytes: Uint8Array | null

  constructor(key: string, operation: string, fingerprints: Keyed['fingerprints'], bytes: Uint8Array | null) {
    this.kind = 'keyed'
    this.key = key
    this.operation = operation
    this.fingerprints = fingerprints
    this.bytes = bytes
  }
}

/**
 * Requests that came again, as they were read: the same bytes with the same head are the same request, so that their JSON
 * need not be brought into its canonical form and hashed a third time. What is found here says nothing about the record.
 */
export interface Readings {
  /** @param body its bytes as they came */
  find(key: string, incoming: Incoming, body: Uint8Array): KeyedRequest | null
  keep(read: KeyedRequest, incoming: Incoming): void
}

interface Reading {
  readonly read: KeyedRequest
  readonly method: string
  readonly target: string
  readonly contentType: string | undefined
  readonly contentEncoding: string | undefined
  readonly body: Uint8Array
}

/** Larger bodies are not kept, and each one counts with what surrounds it. */
const BODY_BYTES_MOST = 16 * 1_024
const READING_BYTES = 512
/** Per route, in two halves: when the newer half is full, the older one is dropped. */
const HALF_BYTES = 1_024 * 1_024

export function createReadings(): Readings {
  let newer = new Map<string, Reading>()
  let older = newer
  let bytes = 0

  function put(reading: Reading): void {
    if (bytes > HALF_BYTES) {
      older = newer
      newer = new Map()
      bytes = 0
    }
    newer.set(reading.read.key, reading)
    const { target, contentType = '', contentEncoding = '' } = reading
    const headChars = target.length + contentType.length + contentEncoding.length + reading.read.operation.length
    bytes += READING_BYTES + headChars + reading.body.length
  }

  return {
    find(key, incoming, body) {
      const reading = newer.get(key) ?? older.get(key)
      if (reading === undefined || !hasSameHead(reading, incoming) || !hasSameBytes(reading.body, body)) return null
      if (newer !== older && !newer.has(key)) put(reading)
      return reading.read
    },
    keep(read, incoming) {
      const { bytes: body } = read
      if (body === null || body.length > BODY_BYTES_MOST || newer.has(read.key) || isConditional(incoming)) return
      put({
        read: new Keyed(read.key, read.operation, read.fingerprints, null),
        method: incoming.method,
        target: incoming.target,
        contentType: incoming.header('content-type')[0],
        contentEncoding: incoming.header('content-encoding')[0],
        // A copy: the framework's buffer may be part of a larger one, or be used again.
        body: Uint8Array.prototype.slice.call(body),
      })
    },
  }
}

function isConditional(incoming: Incoming): boolean {
  return incoming.header('if-match').length > 0 || incoming.header('if-none-match').length > 0
}

function hasSameHead(reading: Reading, incoming: Incoming): boolean {
  return (
    reading.target === incoming.target &&
    reading.method === incoming.method &&
    reading.contentType === incoming.header('content-type')[0] &&
    reading.contentEncoding === incoming.header('content-encoding')[0] &&
    !isConditional(incoming)
  )
}

function hasSameBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false
  return true
}
