/** What no column of a database and no channel takes, whatever the field is for. */
export function unstorable(text: string): string | null {
  if (!text.isWellFormed()) return 'contains half a surrogate pair'
  return text.includes('\0') ? 'contains a NUL character' : null
}
