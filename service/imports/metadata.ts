import type { FieldError } from '../http/problem.ts'

/** What a search import is about, as commands and events carry it. */
export interface SearchMetadata {
  readonly projectId: string
  readonly searchName: string
  readonly referenceFiles: readonly string[]
}

/** Characters; what is longer is a mistake or an attack, and neither may reach the store. */
export const TEXT_CHARS_MOST = 200
/** A search has an export per database that was asked; nobody asks so many. */
export const FILES_MOST = 100

export type Checked = { readonly metadata: SearchMetadata } | { readonly errors: readonly FieldError[] }

/** Every field is looked at, so that a person can mend all of them at once. `names` is what the list is called here. */
export function checkMetadata(fields: Readonly<Record<string, unknown>>, names: 'files' | 'referenceFiles'): Checked {
  const errors: FieldError[] = []
  const projectId = text('projectId')
  const searchName = text('searchName')
  const referenceFiles = files(fields[names])
  return errors.length > 0 ? { errors } : { metadata: { projectId, searchName, referenceFiles } }

  function text(field: string): string {
    const value = fields[field]
    const detail = complaint(value)
    if (detail !== null) errors.push({ field, detail })
    return typeof value === 'string' ? value : ''
  }

  function files(value: unknown): readonly string[] {
    if (!Array.isArray(value) || value.length === 0) {
      errors.push({ field: names, detail: value === undefined ? 'is missing' : 'is not a list of file names' })
      return []
    }
    if (value.length > FILES_MOST) {
      errors.push({ field: names, detail: `has more than ${FILES_MOST} files` })
      return []
    }
    value.forEach((name, at) => {
      const detail = nameComplaint(name) ?? (value.indexOf(name) < at ? 'is listed twice' : null)
      if (detail !== null) errors.push({ field: `${names}[${at}]`, detail })
    })
    return value.filter((name) => typeof name === 'string')
  }
}

/** What of it can be believed: a field that is wrong in any way is as good as missing. */
export function goodMetadata(fields: Readonly<Record<string, unknown>>): Partial<SearchMetadata> {
  const checked = checkMetadata(fields, 'referenceFiles')
  if ('metadata' in checked) return checked.metadata
  const isGood = (name: string) => !checked.errors.some(({ field }) => field === name || field.startsWith(`${name}[`))
  return Object.fromEntries(Object.entries(fields).filter(([name]) => isMetadata(name) && isGood(name)))
}

function isMetadata(name: string): boolean {
  return name === 'projectId' || name === 'searchName' || name === 'referenceFiles'
}

function complaint(value: unknown): string | null {
  if (value === undefined) return 'is missing'
  if (typeof value !== 'string') return 'is not a string'
  if (value.trim() === '') return 'is blank'
  if (value.length > TEXT_CHARS_MOST) return `is longer than ${TEXT_CHARS_MOST} characters`
  // No column of text can hold them.
  return value.includes('\0') || !value.isWellFormed() ? 'holds characters that are none' : null
}

// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const NOT_IN_NAMES = /[/\\\u0000-\u001f\u007f]/

/** A file name names a file, and nothing else: no folder, no way out of one. */
function nameComplaint(value: unknown): string | null {
  const detail = complaint(value)
  if (detail !== null || typeof value !== 'string') return detail
  if (NOT_IN_NAMES.test(value)) return 'is not a plain file name'
  if (value === '.' || value === '..') return 'is not a plain file name'
  return value === value.trim() ? null : 'begins or ends with a space'
}
