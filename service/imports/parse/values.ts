/** What several formats write in the same ways. */

/** `2019 Jan 5`, `2008///`, `2019-01-05`: the year, or null. */
export function yearOf(text: string | null): number | null {
  const digits = /(?<!\d)(?:1[4-9]|20)\d{2}(?!\d)/.exec(text ?? '')?.[0]
  return digits === undefined ? null : Number(digits)
}

/** Without the prefixes that people put in front of it. */
export function doiOf(text: string | null): string | null {
  return /10\.\d{4,9}\/\S+/.exec(text ?? '')?.[0] ?? null
}

/** `123`–`130` in any of the ways in which one writes it. */
export function pagesOf(first: string | null, last: string | null): string | null {
  if (first === null || last === null || first === last) return first ?? last
  return first.includes('-') ? first : `${first}-${last}`
}
