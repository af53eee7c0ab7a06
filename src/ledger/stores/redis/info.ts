/** What the server says about itself, by the names of its fields. */
export function fieldsOf(info: string): Map<string, string> {
  const pairs = info.split('\r\n').map((line) => line.split(':', 2) as [string, string | undefined])
  return new Map(pairs.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])))
}

/** The only policy under which Redis refuses new writes instead of removing old records. */
export const KEEPS = 'noeviction'
