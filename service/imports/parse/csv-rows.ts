import { holdsNul, RECORD_CHARS_MOST, tooLongLine, tooLongRecord } from './entry.ts'
import type { Line, LineParser } from './lines.ts'

export type Row =
  | { readonly kind: 'row'; readonly line: number; readonly fields: readonly string[] }
  | { readonly kind: 'broken'; readonly line: number; readonly reason: string }

/**
 * A quote that never closes would swallow the rest of the file, so reading continues behind the line where it opened. Every
 * time that costs one record of work, so it is done so often only; afterwards the whole stretch is given up.
 */
const RESCANS_MOST = 100

type At = 'start' | 'plain' | 'quoted' | 'closed'

/** Rows of quoted fields (RFC 4180), with any delimiter; quotes hold delimiters, doubled quotes and line ends. */
export function csvRows(delimiter: string, emit: (row: Row) => void): LineParser {
  let lines: Line[] = []
  let chars = 0
  let fields: string[] = []
  let field = ''
  let at: At = 'start'
  let fault: string | null = null
  let rescans = 0

  function reset(): void {
    lines = []
    chars = 0
    fields = []
    field = ''
    at = 'start'
    fault = null
  }

  function finish(): void {
    const line = lines[0]?.number ?? 0
    fields.push(field)
    const row: Row = fault === null ? { kind: 'row', line, fields } : { kind: 'broken', line, reason: fault }
    reset()
    emit(row)
  }

  function giveUp(reason: string): void {
    const [first, ...rest] = lines
    reset()
    emit({ kind: 'broken', line: first?.number ?? 0, reason })
    if (rescans++ < RESCANS_MOST) for (const line of rest) push(line)
  }

  function scan(text: string): void {
    let from = 0
    while (from <= text.length) {
      switch (at) {
        case 'start':
          at = text[from] === '"' ? 'quoted' : 'plain'
          if (at === 'quoted') from++
          break
        case 'quoted': {
          const quote = text.indexOf('"', from)
          if (quote < 0) {
            field += `${text.slice(from)}\n`
            return
          }
          const doubled = text[quote + 1] === '"'
          field += text.slice(from, doubled ? quote + 1 : quote)
          from = quote + (doubled ? 2 : 1)
          if (!doubled) at = 'closed'
          break
        }
        case 'closed':
        case 'plain': {
          const found = text.indexOf(delimiter, from)
          const end = found < 0 ? text.length : found
          const part = text.slice(from, end)
          if (at === 'plain') field += part
          else if (part.trim() !== '') fault ??= 'has text behind a closing quote'
          if (found < 0) return
          fields.push(field)
          field = ''
          at = 'start'
          from = end + delimiter.length
          break
        }
      }
    }
  }

  function push(line: Line): void {
    lines.push(line)
    const text = line.text ?? ''
    chars += text.length + 1
    if (line.text === null) fault ??= tooLongLine(line.number)
    if (text.includes('\0')) fault ??= holdsNul
    if (chars > RECORD_CHARS_MOST) return giveUp(tooLongRecord)
    scan(text)
    if (at !== 'quoted') finish()
  }

  return {
    push,
    end() {
      while (lines.length > 0) giveUp('opens a quote that never closes')
    },
  }
}
