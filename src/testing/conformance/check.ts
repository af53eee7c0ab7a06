/** Assertions of our own: the kit brings no test runner and no assertion library along. */

export function check(condition: unknown, text: string): asserts condition {
  if (condition !== true) throw new Error(text)
}

export function same(actual: unknown, expected: unknown, text: string): void {
  const [is, should] = [plain(actual), plain(expected)]
  if (is !== should) throw new Error(`${text}\n  expected: ${should}\n  actual:   ${is}`)
}

/** One text per value, whatever the order of its members; members that are undefined are no members. */
function plain(value: unknown): string {
  return JSON.stringify(value, (_name, each: unknown) => {
    if (typeof each !== 'object' || each === null || Array.isArray(each)) return each
    return Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}
