import { SECOND, singleCall } from 'onceonly'
import type { Result } from './channel.ts'

/** Enough of a provider's answer to find an id or a reason in it; the rest is not waited for. */
const ANSWER_BYTES_MOST = 64 * 1_024
const REASON_CHARS_MOST = 300

interface Answered {
  readonly status: number
  readonly text: string
  /** It says itself when to come back, so that it has done nothing. */
  readonly comeBack: boolean
  /** Null where it names no time that is still to come. */
  readonly retryAfterMs: number | null
}

/** Not in time, too early, or too many. */
const NOT_TAKEN = new Set([408, 425, 429])
/**
 * Refusals of the message itself. The others (who calls, where to, a key that is in use) come before the provider has
 * looked at the message.
 */
const ABOUT_MESSAGE = new Set([400, 402, 422])
/** Redirects that ask for the same POST elsewhere: nothing was done here. Any other follows a POST that was accepted. */
const POST_ELSEWHERE = new Set([307, 308])

/**
 * One call of a provider that speaks HTTP. A refusal is an answer; a call without an answer may still have been done, unless
 * the error itself proves that nothing left.
 */
export async function callProvider(
  url: string,
  init: RequestInit,
  /** What the provider calls the message, if it does. */
  idOf: (answer: Readonly<Record<string, unknown>>) => unknown,
  ownId: string,
): Promise<Result> {
  let answered: Answered
  try {
    // A redirect would turn the POST into a GET, or carry it to a server that was not configured.
    const response = await fetch(url, { method: 'POST', redirect: 'manual', ...init })
    const { status, headers } = response
    const retryAfterMs = retryAfterOf(headers.get('retry-after'))
    const comeBack = NOT_TAKEN.has(status) || (status === 503 && retryAfterMs !== null)
    const text = await beginningOf(response)
    // A provider that says "at once" while it refuses gets the same back-off as one that names no time.
    answered = { status, comeBack, retryAfterMs: retryAfterMs === 0 ? null : retryAfterMs, text }
  } catch (error) {
    const reason = `No answer of the provider: ${reasonOf(error)}`
    if (singleCall(error) !== 'not_done') return { kind: 'unknown', error: reason, code: 'no_answer' }
    return { kind: 'not_now', error: reason, code: 'unreached', unreached: true }
  }
  const { status, text, comeBack, retryAfterMs } = answered
  const reason = `The provider answered ${status}${text === '' ? '' : `: ${text.slice(0, REASON_CHARS_MOST)}`}`
  if (status >= 200 && status < 300) {
    const id = idOf(fieldsOf(text))
    return { kind: 'sent', providerMessageId: typeof id === 'string' && id !== '' ? id : ownId }
  }
  const code = `http_${status}`
  if (comeBack) return { kind: 'not_now', error: reason, code, ...(retryAfterMs === null ? {} : { retryAfterMs }) }
  const isLost = status >= 500 || (status < 400 && !POST_ELSEWHERE.has(status))
  if (isLost) return { kind: 'unknown', error: reason, code }
  return { kind: 'failed', error: reason, code, ...(ABOUT_MESSAGE.has(status) ? {} : { aboutCall: true }) }
}

async function beginningOf({ body }: Response): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  // Leaving the loop ends the connection.
  for await (const chunk of body ?? []) {
    text += decoder.decode(chunk.subarray(0, ANSWER_BYTES_MOST - bytes), { stream: true })
    bytes += chunk.byteLength
    if (bytes >= ANSWER_BYTES_MOST) break
  }
  return text + decoder.decode()
}

/** `Wed, 21 Oct 2026 07:28:00 GMT`. `Date.parse` alone takes almost any text with a digit for a date. */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

/** Seconds, or a date; 0 for one that has passed, null for anything else. */
function retryAfterOf(text: string | null): number | null {
  if (text === null) return null
  if (/^\d+$/.test(text)) return Number(text) * SECOND
  const at = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? null : Math.max(0, at - Date.now())
}

function fieldsOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  const detail = cause instanceof Error ? ` (${'code' in cause ? String(cause.code) : cause.message})` : ''
  return `${error.message}${detail}`.slice(0, REASON_CHARS_MOST)
}
