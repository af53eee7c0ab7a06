import { nearestName } from '../../ledger/core/nearest.ts'

/** ` Did you mean X?`, or nothing. */
export function hint(given: string, known: readonly string[], shown = (name: string) => name): string {
  const near = nearestName(given, known)
  return near === null ? '' : ` Did you mean ${shown(near)}?`
}
