import { OnceError } from './errors.ts'
import { SECOND } from './limits.ts'
import { unknownOption } from './nearest.ts'

/** Names that other libraries use for the same thing. */
export const foreignNames: Readonly<Record<string, string>> = {
  ttl: 'retainMs',
  expiresIn: 'retainMs',
  lifetime: 'retainMs',
  timeout: 'maxRunMs',
  lockTimeout: 'leaseMs',
}

/**
 * Refuses options that do not exist, so that a misspelt one is not ignored in silence.
 *
 * @param caller the function that takes the options, as users call it
 */
export function checkOptionNames(caller: string, given: unknown, known: readonly string[]): void {
  if (given !== undefined) checkGiven(caller, given, known)
}

/**
 * As `checkOptionNames`, for a function that cannot do without options.
 *
 * @param known every option by its name: a table, so that the compiler can refuse one that lacks an option
 */
export function checkOptions(caller: string, given: unknown, known: Readonly<Record<string, true>>): void {
  checkGiven(caller, given, Object.keys(known))
}

function checkGiven(caller: string, given: unknown, known: readonly string[]): void {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new OnceError('bad_option', `${caller} takes its options as an object, not as ${kindOf(given)}.`)
  }
  const foreign = Object.entries(foreignNames).filter(([, name]) => known.includes(name))
  const unknown = unknownOption(given, known, Object.fromEntries(foreign))
  if (unknown === null) return
  const { name, advice } = unknown
  throw new OnceError('bad_option', `${caller} has no option \`${name}\`. ${advice}`, { details: { option: name } })
}

/** @param whose what takes the option, as a message begins: `Relay` */
export function badOption(whose: string, option: string, what: string): never {
  const text = `${whose} option \`${option}\` ${what}${what.endsWith('?') ? '' : '.'}`
  throw new OnceError('bad_option', text, { details: { option } })
}

/** The value, if it is a whole number within these bounds. Seconds that were given for milliseconds are named. */
export function wholeOption(
  whose: string,
  option: string,
  value: number,
  least = 1,
  most: number = Number.MAX_SAFE_INTEGER,
): number {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return value
  const asSeconds = value * SECOND
  if (option.endsWith('Ms') && value > 0 && value < least && asSeconds >= least && asSeconds <= most) {
    const meant = asSeconds.toLocaleString('en').replaceAll(',', '_')
    badOption(whose, option, `is ${value}, below ${least} ms; did you mean ${meant}?`)
  }
  return badOption(whose, option, `must be a whole number from ${least} to ${most}, not ${String(value)}`)
}

/** What a value is, in the words of an error message. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return 'an array'
  const kind = typeof value
  return kind === 'object' ? 'an object' : `a ${kind}`
}
