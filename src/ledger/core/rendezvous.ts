import { digestParts } from './digest.ts'

/**
 * Rendezvous hashing: every id has one home among the names, independent of the computing process and the order of names.
 * Adding or removing a name moves only the ids of that name.
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
