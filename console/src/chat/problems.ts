import type { MessageIdentity } from 'onceonly/stream'

/** What a reply names that the room does not have; null for any other error. */
export function targetOf(error: unknown): MessageIdentity | null {
  if (!(error instanceof Error && 'code' in error && error.code === 'target_unknown' && 'details' in error)) return null
  const { replyTo = null } = error.details as { readonly replyTo?: MessageIdentity | null }
  return replyTo
}

/** The last window that opens a storage has it: what an earlier one writes is refused, or its database was deleted. */
export function isTaken(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return ('code' in error && error.code === 'storage_taken') || error.name === 'InvalidStateError'
}
