import { BaseError } from '../../ledger/core/base-error.ts'
import { MAX_JSON_DEPTH } from '../../ledger/core/canonical-rules.ts'
import { decodeSendFrame } from '../protocol/decode.ts'
import { sessionLimits } from '../session-limits.ts'
import type { PendingSend } from './ports.ts'

/** A message that is carried over to another identity names one more log among its causes. */
const SPARE_BYTES = 256

const encoder = new TextEncoder()

/** Throws for what every region would refuse: once numbered, it would be sent and refused forever. */
export function checkSendable(message: PendingSend): void {
  const text = textOf(message)
  const bytes = encoder.encode(text).length + SPARE_BYTES
  if (bytes > sessionLimits.clientFrameBytes) {
    throw new BaseError(
      'bad_input',
      `The message takes ${bytes} bytes; ${sessionLimits.clientFrameBytes} are the most.`,
    )
  }
  const decoded = decodeSendFrame(text)
  const reason =
    decoded.kind === 'bad'
      ? decoded.reason
      : hasFingerprint(decoded.frame.body, 1)
        ? null
        : `more than ${MAX_JSON_DEPTH} levels, or half of a character`
  if (reason !== null) throw new BaseError('bad_input', `A region would refuse the message: ${reason}.`)
}

/** What `canonicalValue`, by which a region takes the fingerprint, says of parsed JSON; that is too much for every page. */
export function hasFingerprint(value: unknown, depth: number): boolean {
  if (typeof value === 'string') return value.isWellFormed()
  if (typeof value !== 'object' || value === null) return true
  if (depth >= MAX_JSON_DEPTH) return false
  return Object.entries(value).every(([name, each]) => name.isWellFormed() && hasFingerprint(each, depth + 1))
}

function textOf(message: PendingSend): string {
  try {
    return JSON.stringify({ kind: 'send', cseq: Number.MAX_SAFE_INTEGER, ...message })
  } catch (error) {
    throw new BaseError('bad_input', 'The message cannot be written as JSON.', { cause: error })
  }
}
