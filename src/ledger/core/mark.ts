/**
 * By a mark, not by `instanceof`: two copies of the package in one process must understand each other. Anything may be
 * thrown, also a proxy that throws when it is inspected: that one has no mark.
 */
export function hasMark(value: unknown, mark: symbol): boolean {
  if (typeof value !== 'object' || value === null) return false
  try {
    return mark in value
  } catch {
    return false
  }
}
