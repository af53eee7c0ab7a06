import { encodeValue } from '../ledger/core/codec.ts'
import { OnceError } from '../ledger/core/errors.ts'
import { limits } from '../ledger/core/limits.ts'

/** A value as a journal keeps it, or why it cannot keep it. */
export function recordable(value: unknown): { readonly text: string } | { readonly problem: string } {
  const encoded = encodeValue(value)
  if ('problem' in encoded) return { problem: `cannot be recorded: ${encoded.problem}` }
  if (encoded.text.length <= limits.runResultChars) return encoded
  return { problem: `is longer than ${limits.runResultChars} characters` }
}

/** @param advice what to do about a value that is refused */
export function recordedText(what: string, value: unknown, advice = 'give less, or a reference to it'): string {
  const encoded = recordable(value)
  if ('text' in encoded) return encoded.text
  throw new OnceError('bad_input', `${what} ${encoded.problem}: ${advice}.`)
}
