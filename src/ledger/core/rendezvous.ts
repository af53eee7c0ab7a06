import { digestParts } from './digest.ts'

/**
 * Rendezvous hashing: every id has one home among the names, whoever computes it and in whatever order the names stand.
 * A name that comes or goes moves only the ids that are its own.
 */
export function rendezvous(names: readonly string[], id: string): string {
  let [home] = names
  if (home === undefined) throw new RangeError('There is no home without a name.')
  let most = ''
  for (const name of names) {
    const weight = digestParts([name, id])
    // Equal weights are equal names.
    if (weight > most) {
      most = weight
      home = name
    }
  }
  return home
}
