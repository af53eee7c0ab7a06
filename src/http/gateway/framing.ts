import type { IncomingMessage } from 'node:http'
import { connectionOnly, hostLines } from './headers.ts'

/**
 * Why a request cannot be passed on: its upstream could see its end, or its meaning, in another place than we do. It is
 * asked before anything else looks at the head. What Node's own parser refuses (two lengths, a length with chunks, folded
 * lines) never comes here.
 */
export function whyMisframed(message: IncomingMessage): string | null {
  const { headers, rawHeaders } = message
  const coding = headers['transfer-encoding']
  // The gateway frames bodies again and would lose any other coding (RFC 9112, section 6.1).
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') {
    return 'The only Transfer-Encoding that is understood here is `chunked`.'
  }
  if (coding !== undefined && message.httpVersion === '1.0') {
    return 'HTTP/1.0 has no Transfer-Encoding.'
  }
  if (hostLines(rawHeaders) > 1) return 'There is more than one Host header.'
  // What belongs to the connection ends here: no rule may go by a header that its upstream never sees.
  for (const name of connectionOnly(message) ?? []) delete headers[name]
  return null
}

/** A change of protocol has no body: what follows its head belongs to the new protocol. */
export function declaresBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
}
