import { OnceError } from './errors.ts'
import { nearestName } from './nearest.ts'

/** What is wrong with one setting of a configuration. */
export interface SettingFault {
  /** `routes[2].caller.header`; nothing for the configuration itself. */
  readonly path: string
  readonly what: string
}

/** What is wrong with the name of a setting that does not exist. */
export function unknownSetting(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known)
  return `is not a setting: ${nearest === null ? `known are ${known.join(', ')}` : `did you mean \`${nearest}\`?`}`
}

/** Refuses a configuration with all its faults at once, if it has any. */
export function refuseFaults(whose: string, faults: readonly SettingFault[]): void {
  if (faults.length === 0) return
  const list = faults.map(({ path, what }) => `\`${path}\` ${what}`).join('; ')
  const text = `The configuration of the ${whose} is not valid: ${list}${list.endsWith('?') ? '' : '.'}`
  throw new OnceError('bad_option', text, { details: { faults } })
}
