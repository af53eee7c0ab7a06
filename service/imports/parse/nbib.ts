import { type Emit, noTitle } from './entry.ts'
import type { LineParser } from './lines.ts'
import { isBlank, type TaggedRecord, taggedRecord, textIn } from './tagged.ts'
import { doiOf, yearOf } from './values.ts'

/** `PMID- 123`, `TI  - …`: the tag is padded to four characters. */
const TAG = /^(?=.{4}-)([A-Z][A-Z0-9]{1,3}) *-(.*)$/
const CONTINUED = /^\s+\S/

export function nbibTagOf(text: string): string | null {
  return TAG.exec(text)?.[1] ?? null
}

/**
 * MEDLINE, as PubMed exports it: a record begins with `PMID` and ends with an empty line; indented lines continue a
 * value.
 */
export function nbibParser(emit: Emit): LineParser {
  let record: TaggedRecord | null = null
  let began = false

  function close(): void {
    if (record !== null) finish(record, emit)
    record = null
  }

  function open(line: number): TaggedRecord {
    record = taggedRecord(line)
    return record
  }

  return {
    push(line) {
      if (line.text !== null && isBlank(line.text)) return close()
      const [, tag, value = ''] = TAG.exec(line.text ?? '') ?? []
      if (tag === 'PMID') {
        close()
        began = true
        return open(line.number).add(tag, value.trim())
      }
      // What an export says about itself, above its first record.
      if (!began && tag === undefined) return
      began = true
      const current = record ?? open(line.number)
      if (current.first('PMID') === null) current.spoil('does not begin with PMID')
      const text = textIn(line, current)
      if (text === null) return
      if (tag !== undefined) current.add(tag, value.trim())
      else if (CONTINUED.test(text)) current.extend(text.trim())
      else current.spoil(`line ${line.number} is neither a tag nor indented`)
    },
    end: close,
  }
}

function finish(record: TaggedRecord, emit: Emit): void {
  const { line, first, all } = record
  const title = first('TI', 'BTI', 'TT')
  const reason = record.fault ?? (title === null ? noTitle : null)
  if (reason !== null || title === null) return emit({ kind: 'broken', line, reason: reason ?? noTitle })
  const full = all('FAU')
  emit({
    kind: 'reference',
    line,
    reference: {
      type: first('PT'),
      title,
      authors: [...(full.length > 0 ? full : all('AU')), ...all('CN')],
      year: yearOf(first('DP', 'DEP')),
      journal: first('JT', 'TA'),
      volume: first('VI'),
      issue: first('IP'),
      pages: first('PG'),
      doi: doiOf(all('LID', 'AID').find((id) => id.includes('[doi]')) ?? null),
      pmid: first('PMID'),
      url: null,
      abstract: first('AB'),
      keywords: all('OT', 'MH'),
    },
  })
}
