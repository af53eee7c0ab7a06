import { holdsNul, RECORD_CHARS_MOST, tooLongLine, tooLongRecord } from './entry.ts'
import type { Line } from './lines.ts'

/** A record of tags and values, as RIS and MEDLINE have them: tags repeat, and values span lines. */
export interface TaggedRecord {
  readonly line: number
  /** The first thing that is wrong with it, or null. */
  readonly fault: string | null
  add(tag: string, value: string): void
  /** Continues the value of the last tag. */
  extend(text: string): void
  spoil(reason: string): void
  first(...tags: readonly string[]): string | null
  all(...tags: readonly string[]): readonly string[]
}

export function taggedRecord(line: number): TaggedRecord {
  const values = new Map<string, string[]>()
  let last: string[] | null = null
  let chars = 0
  let fault: string | null = null

  function spoil(reason: string): void {
    fault ??= reason
    // They are not needed any more, and the record may still be long.
    values.clear()
    last = null
  }

  function keeps(text: string): boolean {
    chars += text.length
    if (chars > RECORD_CHARS_MOST) spoil(tooLongRecord)
    else if (text.includes('\0')) spoil(holdsNul)
    return fault === null
  }

  return {
    line,
    get fault() {
      return fault
    },
    add(tag, value) {
      if (!keeps(tag + value)) return
      last = values.get(tag) ?? []
      last.push(value)
      values.set(tag, last)
    },
    extend(text) {
      if (!keeps(text) || last === null) return
      const value = last.pop() ?? ''
      last.push(value === '' ? text : `${value} ${text}`)
    },
    spoil,
    first: (...tags) => tags.flatMap((tag) => values.get(tag) ?? []).find((value) => value !== '') ?? null,
    all: (...tags) => tags.flatMap((tag) => values.get(tag) ?? []).filter((value) => value !== ''),
  }
}

/** The text of a line; a line that was too long spoils the record that it belongs to. */
export function textIn(line: Line, record: TaggedRecord): string | null {
  if (line.text === null) record.spoil(tooLongLine(line.number))
  return line.text
}

/** Old exports end with the mark of a floppy disk. */
export function isBlank(text: string): boolean {
  return text.trim() === '' || text === '\x1a'
}
