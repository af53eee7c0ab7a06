import type { Pointer } from '../core/record.ts'
import type { Answer, Captured, HeaderList } from './exchange.ts'
import { REPLAYED_HEADER } from './exchange.ts'

/** How much of an answer a route keeps. */
export type KeepAnswer = 'response' | 'pointer' | 'outcome'

/** An answer as the record holds it. `missing` stands for a body that was too large to keep. */
export interface StoredAnswer {
  readonly status: number
  readonly headers: HeaderList
  readonly body?: Uint8Array
  readonly missing?: { readonly bytes: number; readonly sha256: string }
  readonly pointer?: Pointer
}

/** What describes the result is kept; what belongs to the one exchange, or to the one caller, never is. */
const keptHeaders = new Set(['location', 'etag', 'link', 'last-modified', 'cache-control', 'vary', 'retry-after'])

function isKept(name: string): boolean {
  // The length is computed anew, and the encoding belongs to the bytes on the wire, not to the record.
  if (name === 'content-length') return false
  return keptHeaders.has(name) || name.startsWith('content-')
}

export function storedAnswer(
  { status, headers, body }: Captured,
  keep: KeepAnswer,
  pointer: Pointer | null,
): StoredAnswer {
  if (keep === 'outcome') return { status, headers: headers.filter(([name]) => name === 'location') }
  const kept = headers.filter(([name]) => isKept(name))
  if (keep === 'pointer') return { status, headers: kept, ...(pointer === null ? {} : { pointer }) }
  return body instanceof Uint8Array ? { status, headers: kept, body } : { status, headers: kept, missing: body }
}

/** Byte for byte what was answered first, and marked as a replay. */
export function replayedAnswer({ status, headers, body = new Uint8Array() }: StoredAnswer): Answer {
  const length: HeaderList = hasNoBody(status) ? [] : [['content-length', String(body.length)]]
  return markedReplayed({ status, headers: [...headers, ...length], body })
}

export function markedReplayed(answer: Answer): Answer {
  return { ...answer, headers: [...answer.headers, [REPLAYED_HEADER, 'true']] }
}

export function hasNoBody(status: number): boolean {
  return status === 204 || status === 304 || (status >= 100 && status < 200)
}
