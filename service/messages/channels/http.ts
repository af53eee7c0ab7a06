import { SECOND, singleCall } from 'onceonly'
import type { Result } from './channel.ts'

/** Enough of a provider's answer to find an id or a reason in it. */
const ANSWER_CHARS_MOST = 64 * 1_024
const REASON_CHARS_MOST = 300

interface Answered {
  readonly status: number
  readonly text: string
  /** It says itself when to come back, so that it has done nothing. */
  readonly comeBack: boolean
  readonly retryAfterMs: number | null
}

/** Not in time, too early, or too many. */
const NOT_TAKEN = new Set([408, 425, 429])

/**
 * One call of a provider that speaks HTTP. A refusal is an answer; what nobody answered may still have been done, unless
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
    // A redirect would turn the POST into a GET, or carry it to somebody whom nobody configured.
    const response = await fetch(url, { method: 'POST', redirect: 'manual', ...init })
    const { status, headers } = response
    const retryAfterMs = retryAfterOf(headers.get('retry-after'))
    const comeBack = NOT_TAKEN.has(status) || (status === 503 && retryAfterMs !== null)
    answered = { status, comeBack, retryAfterMs, text: (await response.text()).slice(0, ANSWER_CHARS_MOST) }
  } catch (error) {
    const kind = singleCall(error) === 'not_done' ? 'not_now' : 'unknown'
    return { kind, error: `No answer of the provider: ${reasonOf(error)}` }
  }
  const { status, text, comeBack, retryAfterMs } = answered
  const told = `The provider answered ${status}${text === '' ? '' : `: ${text.slice(0, REASON_CHARS_MOST)}`}`
  if (status >= 200 && status < 300) {
    const id = idOf(fieldsOf(text))
    return { kind: 'sent', providerMessageId: typeof id === 'string' && id !== '' ? id : ownId }
  }
  if (comeBack) return { kind: 'not_now', error: told, ...(retryAfterMs === null ? {} : { retryAfterMs }) }
  return { kind: status >= 500 ? 'unknown' : 'failed', error: told }
}

/** Seconds, or a date; null for anything else. */
function retryAfterOf(text: string | null): number | null {
  if (text === null) return null
  if (/^\d{1,9}$/.test(text)) return Number(text) * SECOND
  const at = Date.parse(text)
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
