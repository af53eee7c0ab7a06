import Type, { type Static } from 'typebox'
import { type Checked, checked, type Fields, filledText, ruled } from '../http/input.ts'

/** Characters; what is longer is a mistake or an attack, and neither may reach the store. */
const TEXT_CHARS_MOST = 200
/** More than the databases that one search asks, each with an export. */
const FILES_MOST = 100

// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const NOT_IN_NAMES = /[/\\\u0000-\u001f\u007f]/

/** A file name names a file, and nothing else: no folder, no way out of one. */
const fileName = ruled(filledText(TEXT_CHARS_MOST), (name) => {
  if (NOT_IN_NAMES.test(name) || name === '.' || name === '..') return 'is not a plain file name'
  return name === name.trim() ? null : 'begins or ends with a space'
})

export const text = filledText(TEXT_CHARS_MOST)
export const fileNames = ruled(
  Type.Array(fileName, { minItems: 1, maxItems: FILES_MOST, uniqueItems: true }),
  (names: readonly unknown[]) =>
    names.flatMap((name, at) => (names.indexOf(name) < at ? [{ field: `[${at}]`, detail: 'is listed twice' }] : [])),
)

const metadata = Type.Object({ projectId: text, searchName: text, referenceFiles: fileNames })

/** What a search import is about, as commands and events carry it. */
export interface SearchMetadata extends Readonly<Omit<Static<typeof metadata>, 'referenceFiles'>> {
  readonly referenceFiles: readonly string[]
}

export function checkMetadata(fields: Fields): Checked<SearchMetadata> {
  return checked(metadata, fields)
}

/** The fields that are good: one that is wrong in any way counts as missing. */
export function goodMetadata(fields: Fields): Partial<SearchMetadata> {
  return Object.fromEntries(
    Object.entries(metadata.properties)
      .filter(([name, schema]) => 'value' in checked(schema, fields[name]))
      .map(([name]) => [name, fields[name]]),
  )
}
