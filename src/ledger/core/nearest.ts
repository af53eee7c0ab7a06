/** More changed letters than this are another word, not a typing mistake. */
const CHANGES_MOST = 3

/** `lease` is the beginning of `leaseMs`; shorter ones say too little. */
const BEGINNING_CHARS = 4

/** Longer names are never compared: the cost grows with the square of the length. */
const NAME_CHARS_MOST = 64

/** The known name that is most likely meant, for "did you mean"; null where none is close. */
export function nearestName(name: string, known: readonly string[]): string | null {
  if (name.length > NAME_CHARS_MOST) return null
  const lower = name.toLowerCase()
  const begun = known.find((each) => lower.length >= BEGINNING_CHARS && each.toLowerCase().startsWith(lower))
  if (begun !== undefined) return begun
  let nearest: string | null = null
  // A short name changes into almost anything.
  let fewest = Math.min(CHANGES_MOST, Math.floor(name.length / 3)) + 1
  for (const each of known) {
    const changes = changesBetween(lower, each.toLowerCase())
    if (changes < fewest) [nearest, fewest] = [each, changes]
  }
  return nearest
}

/**
 * The first property of `given` that is not in `known`, with advice for its message; null where all are known.
 *
 * @param foreign names that other libraries use, with the known name for the same thing
 */
export function unknownOption(
  given: object,
  known: readonly string[],
  foreign: Readonly<Record<string, string>> = {},
): { readonly name: string; readonly advice: string } | null {
  const name = Object.keys(given).find((each) => !known.includes(each))
  if (name === undefined) return null
  const nearest = foreign[name] ?? nearestName(name, known)
  return { name, advice: nearest === null ? `Known options: ${known.join(', ')}.` : `Did you mean \`${nearest}\`?` }
}

/** How many letters have to be added, removed, replaced or swapped with their neighbour. */
function changesBetween(a: string, b: string): number {
  let before: number[] = []
  let above = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      current[column] = Math.min(
        (above[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (above[column - 1] ?? 0) + (same ? 0 : 1),
        swapped ? (before[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      )
    }
    ;[before, above] = [above, current]
  }
  return above[b.length] ?? 0
}
