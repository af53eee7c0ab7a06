import { SECOND } from '../../ledger/core/limits.ts'

/** Many proxies cut a connection that is silent for a minute: a longer wait would end in their 502 instead of our 202. */
export const PREFERRED_WAIT_MOST_MS = 30 * SECOND

/** `Preference-Applied` of RFC 7240, on every 202 that a caller asked for. */
export const PREFERENCE_APPLIED = ['preference-applied', 'respond-async'] as const

/**
 * `Prefer: respond-async, wait=10` of RFC 7240: how long the caller wants to wait for the handler before it is answered
 * 202; 0 without `wait`. Null where it prefers nothing of the kind. A preference that cannot be read is ignored.
 */
export function preferredWaitMs(lines: readonly string[]): number | null {
  const preferences = new Map<string, string>()
  for (const preference of lines.flatMap(membersOf)) {
    // Parameters of a preference, behind a semicolon, are of no use here.
    const [name = '', value = ''] = (preference.split(';', 1)[0] ?? '').split('=', 2).map((part) => part.trim())
    // The first of a name counts.
    if (!preferences.has(name.toLowerCase())) preferences.set(name.toLowerCase(), value)
  }
  if (!preferences.has('respond-async')) return null
  const wait = preferences.get('wait') ?? ''
  return /^\d+$/.test(wait) ? Math.min(Number(wait) * SECOND, PREFERRED_WAIT_MOST_MS) : 0
}

/** The members of a list, by its commas outside of quotes. In one pass: a pattern could take long for hostile quotes. */
function membersOf(line: string): readonly string[] {
  const members: string[] = []
  let quoted = false
  let from = 0
  for (let at = 0; at < line.length; at++) {
    const char = line[at]
    if (char === '"') quoted = !quoted
    else if (char === '\\' && quoted) at++
    else if (char === ',' && !quoted) {
      members.push(line.slice(from, at))
      from = at + 1
    }
  }
  return [...members, line.slice(from)]
}
