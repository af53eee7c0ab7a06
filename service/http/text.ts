/** What no column of a database and no channel takes, whatever the field is for. */
export function unstorable(text: string): string | null {
  if (!text.isWellFormed()) return 'contains half a surrogate pair'
  return text.includes('\0') ? 'contains a NUL character' : null
}

/** In code points: an emoji is one character to its writer. */
function charsOf(text: string): number {
  // Each code point beyond the first plane is two units; nothing needs to be copied to count them.
  return text.length - (text.match(/[\u{10000}-\u{10ffff}]/gu)?.length ?? 0)
}

/** For a required field. Null when nothing is wrong with it. */
export function complaintAboutText(value: unknown, charsMost: number): string | null {
  if (value === undefined) return 'is missing'
  if (typeof value !== 'string') return 'is not a string'
  if (value.trim() === '') return 'is blank'
  return unstorable(value) ?? (charsOf(value) > charsMost ? `is longer than ${charsMost} characters` : null)
}
