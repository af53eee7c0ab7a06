import { canonicalValue } from '../../ledger/core/canonical-value.ts'
import { OnceError } from '../../ledger/core/errors.ts'
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
    throw new OnceError(
      'bad_input',
      `The message takes ${bytes} bytes; ${sessionLimits.clientFrameBytes} are the most.`,
    )
  }
  const decoded = decodeSendFrame(text)
  if (decoded.kind === 'bad') throw new OnceError('bad_input', `A region would refuse the message: ${decoded.reason}.`)
  try {
    canonicalValue(decoded.frame)
  } catch (error) {
    throw new OnceError('bad_input', 'The message cannot be fingerprinted.', { cause: error })
  }
}

function textOf(message: PendingSend): string {
  try {
    return JSON.stringify({ kind: 'send', cseq: Number.MAX_SAFE_INTEGER, ...message })
  } catch (error) {
    throw new OnceError('bad_input', 'The message cannot be written as JSON.', { cause: error })
  }
}
