import type { SettingFault } from '../../ledger/core/settings.ts'
import { unknownSetting } from '../../ledger/core/settings.ts'

/** A small checker for configurations: every fault is named by its path, and all faults are reported at once. */

/** Looks at a value and notes what is wrong with it. */
export type Check = (value: unknown, path: string, faults: SettingFault[]) => void

export function text(what = 'is not a text'): Check {
  return (value, path, faults) => {
    if (typeof value !== 'string' || value.trim() === '') faults.push({ path, what })
  }
}

export function matching(pattern: RegExp, what: string): Check {
  return (value, path, faults) => {
    if (typeof value !== 'string' || !pattern.test(value)) faults.push({ path, what })
  }
}

export function oneOf(...words: readonly (string | boolean)[]): Check {
  const what = `is none of ${words.map((word) => JSON.stringify(word)).join(', ')}`
  return (value, path, faults) => {
    if (!words.includes(value as string)) faults.push({ path, what })
  }
}

export function wholeNumber(least: number, most: number): Check {
  return (value, path, faults) => {
    const fits = Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most
    if (!fits) faults.push({ path, what: `is not a whole number from ${least} to ${most}` })
  }
}

export function listOf(check: Check, most: number): Check {
  return (value, path, faults) => {
    if (!Array.isArray(value) || value.length > most)
      return void faults.push({ path, what: `is not a list of at most ${most}` })
    value.forEach((each, at) => check(each, `${path}[${at}]`, faults))
  }
}

/** Any names, each with a value of one kind. */
export function tableOf(check: Check): Check {
  return (value, path, faults) => {
    if (!isFields(value)) return void faults.push({ path, what: 'is not an object' })
    for (const [name, each] of Object.entries(value)) check(each, joined(path, name), faults)
  }
}

/** An object with these members and no others; those in `needed` must be there. */
export function fields(members: Readonly<Record<string, Check>>, needed: readonly string[] = []): Check {
  return (value, path, faults) => {
    if (!isFields(value)) return void faults.push({ path, what: 'is not an object' })
    for (const [name, each] of Object.entries(value)) {
      const check = Object.hasOwn(members, name) ? members[name] : undefined
      if (check === undefined) {
        faults.push({ path: joined(path, name), what: unknownSetting(name, Object.keys(members)) })
      } else if (each !== undefined) check(each, joined(path, name), faults)
    }
    for (const name of needed) {
      if (value[name] === undefined) faults.push({ path: joined(path, name), what: 'is missing' })
    }
  }
}

/** The first of the kinds that fits; where none does, `what` says what would. */
export function either(checks: readonly Check[], what: string): Check {
  return (value, path, faults) => {
    const tries = checks.map((check) => {
      const found: SettingFault[] = []
      check(value, path, found)
      return found
    })
    if (tries.some((found) => found.length === 0)) return
    // A fault inside of an object says more than that it is none of the kinds.
    const inside = tries.find((found) => isFields(value) && found.every((fault) => fault.path !== path))
    faults.push(...(inside ?? [{ path, what }]))
  }
}

function joined(path: string, name: string): string {
  const step = /^[A-Za-z_$][\w$]*$/.test(name) ? name : `[${JSON.stringify(name)}]`
  return path === '' || step.startsWith('[') ? path + step : `${path}.${step}`
}

export function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
