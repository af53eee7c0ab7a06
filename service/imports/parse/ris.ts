import { type Emit, noTitle, tooLongLine } from './entry.ts'
import type { Line, LineParser } from './lines.ts'
import { isBlank, type TaggedRecord, taggedRecord, textIn } from './tagged.ts'
import { doiOf, pagesOf, yearOf } from './values.ts'

/** `TY  - JOUR`: two spaces, so that a sentence that continues with `IL -6` is not taken for a tag. */
const TAG = /^([A-Z][A-Z0-9]) {2}-(.*)$/

export function risTagOf(text: string): string | null {
  return TAG.exec(text)?.[1] ?? null
}

/** RIS: a record goes from `TY` to `ER`; a line without a tag continues the one before. */
export function risParser(emit: Emit): LineParser {
  let record: TaggedRecord | null = null
  let began = false
  let straying = false

  function close(reason: string | null): void {
    if (record === null) return
    if (reason !== null) record.spoil(reason)
    finish(record, emit)
    record = null
  }

  function stray(line: number, reason: string): void {
    // One report for a whole paragraph, and none for what an export says about itself at the top.
    if (began && !straying) emit({ kind: 'broken', line, reason })
    straying = true
  }

  function untagged(line: Line): void {
    if (record === null) {
      if (line.text === null) stray(line.number, tooLongLine(line.number))
      else if (!isBlank(line.text)) stray(line.number, 'stands outside of any record')
      return
    }
    const text = textIn(line, record)
    if (text !== null && !isBlank(text)) record.extend(text.trim())
  }

  function tagged(line: Line, tag: string, value: string): void {
    straying = false
    began = true
    if (tag === 'ER') {
      if (record === null)
        emit({ kind: 'broken', line: line.number, reason: 'ends a record (ER) that never began (TY)' })
      return close(null)
    }
    if (tag === 'TY') close('has no end (ER) before the next record begins')
    if (record === null) {
      record = taggedRecord(line.number)
      if (tag !== 'TY') record.spoil('does not begin with TY')
    }
    record.add(tag, value)
  }

  return {
    push(line) {
      const [, tag, value = ''] = TAG.exec(line.text ?? '') ?? []
      if (tag === undefined) untagged(line)
      else tagged(line, tag, value.trim())
    },
    end: () => close('has no end (ER); the file may have been cut off'),
  }
}

function finish(record: TaggedRecord, emit: Emit): void {
  const { line, first, all } = record
  const title = first('TI', 'T1', 'CT', 'BT')
  const reason = record.fault ?? (title === null ? noTitle : null)
  if (reason !== null || title === null) return emit({ kind: 'broken', line, reason: reason ?? noTitle })
  const url = first('UR', 'L2', 'LK')
  emit({
    kind: 'reference',
    line,
    reference: {
      type: first('TY'),
      title,
      authors: all('AU', 'A1'),
      year: yearOf(first('PY', 'Y1', 'DA')),
      journal: first('JO', 'JF', 'T2', 'JA', 'J2'),
      volume: first('VL'),
      issue: first('IS'),
      pages: pagesOf(first('SP'), first('EP')),
      doi: doiOf(first('DO')) ?? doiOf(url),
      pmid: null,
      url,
      abstract: first('AB', 'N2'),
      keywords: all('KW'),
    },
  })
}
