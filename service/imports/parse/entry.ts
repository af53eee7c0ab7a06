import Type, { type Static, type TObject } from 'typebox'
import { list, text, textOrNull } from '../../openapi/declaration.ts'

/** One reference of a file, whatever its format called the parts. */
export const reference = {
  type: { ...textOrNull, description: 'As the file says it: `JOUR`, `Journal Article`.' },
  title: text,
  authors: list(text),
  year: Type.Unsafe<number | null>({ type: ['integer', 'null'] }),
  journal: textOrNull,
  volume: textOrNull,
  issue: textOrNull,
  pages: textOrNull,
  doi: textOrNull,
  pmid: textOrNull,
  url: textOrNull,
  abstract: textOrNull,
  keywords: list(text),
}
export type Reference = Static<TObject<typeof reference>>

/** What a file is read into, in its own order. `line` is where the record begins, from 1. */
export type Entry =
  | { readonly kind: 'reference'; readonly line: number; readonly reference: Reference }
  /** It says why, for the person who has to mend the file; the rest of the file is read all the same. */
  | { readonly kind: 'broken'; readonly line: number; readonly reason: string }

export type Emit = (entry: Entry) => void

/** A file of which nothing at all can be read. The message completes the sentence "The file …". */
export class Unreadable extends Error {
  override readonly name = 'Unreadable'
}

/** The longest line that is kept, in bytes: an abstract of fifty pages fits, a file without line ends does not. */
export const LINE_BYTES_MOST = 256 * 1024
/** The longest record, in characters: a paper with five thousand authors fits. */
export const RECORD_CHARS_MOST = 1024 * 1024
/** How far the first record may be away from the top: exports begin with a few lines about themselves. */
export const PREAMBLE_LINES_MOST = 50

export const tooLongLine = (line: number) => `line ${line} is longer than ${LINE_BYTES_MOST} bytes`
export const tooLongRecord = `is longer than ${RECORD_CHARS_MOST} characters`
export const noTitle = 'has no title'
export const holdsNul = 'holds a NUL character'
