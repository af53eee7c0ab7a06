import { canonicalValue } from '../../ledger/core/canonical.ts'
import { sha256Base64Url } from '../../ledger/core/digest.ts'
import type { SendRequest, SessionClaim } from '../ports.ts'
import type { SendFrame } from '../protocol/protocol.ts'

/** Null for a body whose fingerprint would not distinguish it from others. */
export function requestOf(frame: SendFrame, { client, epoch, generation }: SessionClaim): SendRequest | null {
  const { kind: _kind, ...message } = frame
  try {
    const digest = sha256Base64Url(canonicalValue([message.body, message.replyTo]))
    return { ...message, client, epoch, generation, digest }
  } catch {
    return null
  }
}
