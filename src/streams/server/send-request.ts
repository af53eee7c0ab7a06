import { canonicalValue } from '../../ledger/core/canonical.ts'
import { sha256Base64Url } from '../../ledger/core/digest.ts'
import type { SendRequest, SessionClaim } from '../ports.ts'
import type { SendFrame } from '../protocol/protocol.ts'

/** Null for a body whose fingerprint would not distinguish it from others. */
export function requestOf(frame: SendFrame, { client, epoch, generation }: SessionClaim): SendRequest | null {
  const { cseq, seen, replyTo, body } = frame
  try {
    const digest = sha256Base64Url(canonicalValue([body, replyTo]))
    return { client, epoch, generation, cseq, seen, replyTo, body, digest }
  } catch {
    return null
  }
}
