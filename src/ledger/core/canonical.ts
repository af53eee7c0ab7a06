import { canonicalBytes } from './canonical-scan.ts'

export { CanonicalError, type CanonicalReason, MAX_JSON_DEPTH } from './canonical-rules.ts'
export { canonicalValue } from './canonical-value.ts'

// A byte order mark inside a string is text, and stays.
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/**
 * The canonical text of JSON, without loss: member order and string form of RFC 8785, numbers as exact decimals.
 * Equal for two texts if, and only if, they denote the same value. Refuses what has no single meaning: duplicate names,
 * lone surrogates, bytes that are not UTF-8.
 */
export function canonicalJson(json: string | Uint8Array): string {
  return decoder.decode(canonicalBytes(json))
}
