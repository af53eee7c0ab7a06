import { SECOND } from '../../ledger/core/limits.ts'

/** Whether an answer is worth another try, and when. */
export type Retry = { readonly again: false } | { readonly again: true; readonly afterMs: number | null }

/** A proxy may answer in place of the server: these statuses do not refuse the request itself. */
const PASSING = new Set([429, 502, 503, 504])
/** A problem document is short; whatever is longer is none. */
const DOCUMENT_BYTES_MOST = 64 * 1_024

interface Document {
  readonly retryable?: unknown
  readonly retryAfterMs?: unknown
  readonly error?: unknown
}

/**
 * A problem document that says whether it is retryable decides: a reused key and an unknown outcome are never sent again.
 * Without one, only transient statuses are retried.
 */
export async function retryOf(response: Response): Promise<Retry> {
  if (response.status < 400) return { again: false }
  const document = await documentOf(response)
  const afterMs = waitOf(response, document)
  if (typeof document?.retryable === 'boolean') return document.retryable ? { again: true, afterMs } : { again: false }
  const inUse = response.status === 409 && codeOf(document) === 'idempotency_key_in_use'
  return PASSING.has(response.status) || inUse ? { again: true, afterMs } : { again: false }
}

async function documentOf(response: Response): Promise<Document | null> {
  const type = response.headers.get('content-type') ?? ''
  if (!/^application\/([\w.-]+\+)?json\b/i.test(type)) return null
  if (Number(response.headers.get('content-length') ?? 0) > DOCUMENT_BYTES_MOST) return null
  try {
    const document: unknown = await response.clone().json()
    return typeof document === 'object' && document !== null ? document : null
  } catch {
    return null
  }
}

/** In the manner of Stripe. */
function codeOf(document: Document | null): unknown {
  const error = document?.error
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
}

/** The document counts in milliseconds; the header in seconds, or it names a time. */
function waitOf(response: Response, document: Document | null): number | null {
  const exactMs = document?.retryAfterMs
  if (typeof exactMs === 'number' && exactMs >= 0) return exactMs
  const header = response.headers.get('retry-after')
  if (header === null) return null
  if (/^\d+$/.test(header.trim())) return Number(header) * SECOND
  const at = Date.parse(header)
  return Number.isNaN(at) ? null : Math.max(0, at - Date.now())
}
