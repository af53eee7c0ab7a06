import { OnceError } from './errors.ts'
import { unknownOption } from './nearest.ts'

/**
 * Refuses options that do not exist, so that a misspelt one is not ignored in silence.
 *
 * @param caller the function that takes the options, as users call it
 */
export function checkOptionNames(caller: string, given: unknown, known: readonly string[]): void {
  if (given === undefined) return
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new OnceError('bad_option', `${caller} takes its options as an object, not as ${kindOf(given)}.`)
  }
  const unknown = unknownOption(given, known)
  if (unknown === null) return
  const { name, advice } = unknown
  throw new OnceError('bad_option', `${caller} has no option \`${name}\`. ${advice}`, { details: { option: name } })
}

/** What a value is, in the words of an error message. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return 'an array'
  const kind = typeof value
  return kind === 'object' ? 'an object' : `a ${kind}`
}
