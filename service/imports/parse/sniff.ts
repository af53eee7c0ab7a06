import { announcedDelimiter, type CsvHeader, csvHeaderOf, csvParser } from './csv.ts'
import { type Emit, PREAMBLE_LINES_MOST, Unreadable } from './entry.ts'
import type { Line, LineParser } from './lines.ts'
import { nbibParser, nbibTagOf } from './nbib.ts'
import { risParser, risTagOf } from './ris.ts'
import { isBlank } from './tagged.ts'

/**
 * Finds out what a file is by what it says, because names lie: `TY` and `ER` are RIS; longer tags are MEDLINE; a first
 * line that names a title column is CSV. Tags of two letters are both, until one of those decides.
 */
export function anyParser(emit: Emit): LineParser {
  let chosen: LineParser | null = null
  let seen: Line[] = []
  let delimiter: string | null = null
  let looksTagged = false

  function choose(parser: LineParser): void {
    chosen = parser
    for (const line of seen) parser.push(line)
    seen = []
  }

  function look(line: Line): void {
    const text = line.text ?? ''
    if (text.includes('\0')) throw new Unreadable('is not text')
    if (line.text !== null && isBlank(text)) return
    seen.push(line)
    const ris = risTagOf(text)
    if (ris === 'TY' || ris === 'ER') return choose(risParser(emit))
    if ((nbibTagOf(text)?.length ?? 0) > 2) return choose(nbibParser(emit))
    looksTagged ||= ris !== null
    const header = headerIn(text)
    if (header !== null) {
      seen = []
      return choose(csvParser(header, emit))
    }
    if (seen.length >= PREAMBLE_LINES_MOST) decide()
  }

  /** The header is the first line, or the second when the first one only announces the delimiter. */
  function headerIn(text: string): CsvHeader | null {
    if (seen.length === 1) delimiter = announcedDelimiter(text)
    return seen.length === (delimiter === null ? 1 : 2) ? csvHeaderOf(text, delimiter) : null
  }

  function decide(): void {
    if (looksTagged) return choose(risParser(emit))
    if (seen.length === 0) throw new Unreadable('is empty')
    throw new Unreadable('is neither RIS, nor NBIB (PubMed), nor CSV with a title column')
  }

  return {
    push(line) {
      if (chosen === null) look(line)
      else chosen.push(line)
    },
    end() {
      if (chosen === null) decide()
      chosen?.end()
    },
  }
}
