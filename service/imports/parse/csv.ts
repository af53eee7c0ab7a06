import { csvRows, type Row } from './csv-rows.ts'
import { type Emit, noTitle, type Reference } from './entry.ts'
import type { LineParser } from './lines.ts'
import { doiOf, pagesOf, yearOf } from './values.ts'

type Column = Exclude<keyof Reference, 'pages'> | 'pages' | 'firstPage' | 'lastPage'

/** What the usual exports call their columns, without spaces, case and punctuation. */
const synonyms: Readonly<Record<Column, string>> = {
  type: 'type itemtype documenttype publicationtype referencetype genre ty',
  title: 'title articletitle documenttitle primarytitle papertitle itemtitle ti t1',
  authors: 'authors author authornames authorfullnames creator creators au a1',
  year: 'year publicationyear pubyear yearpublished publicationdate published date py y1',
  journal:
    'journal journalbook journaltitle journalname sourcetitle source publicationtitle publication publicationname ' +
    'secondarytitle containertitle jo jf t2 so',
  volume: 'volume vol vl',
  issue: 'issue number issuenumber is',
  pages: 'pages page pagerange pg',
  firstPage: 'pagestart startpage firstpage beginningpage sp',
  lastPage: 'pageend endpage lastpage endingpage ep',
  doi: 'doi doilink doiurl digitalobjectidentifier do di',
  pmid: 'pmid pubmedid accessionnumberpubmed',
  url: 'url link links weblink ur',
  abstract: 'abstract abstractnote summary ab n2',
  keywords: 'keywords keyword authorkeywords indexkeywords manualtags subjects tags kw de',
}

const columnOf = new Map(
  Object.entries(synonyms).flatMap(([column, names]) =>
    names.split(' ').map((name) => [name, column as Column] as const),
  ),
)

const delimiters = [',', ';', '\t', '|'] as const

/** Excel may say it in a line of its own. */
const SEPARATOR = /^"?sep=(.)"?$/i

export interface CsvHeader {
  readonly delimiter: string
  /** For every field of a row, where it belongs; null for those that are not needed. */
  readonly columns: readonly (Column | null)[]
}

/** A line is a header when one of its columns is the title, by the delimiter that makes the most columns of it. */
export function csvHeaderOf(text: string, announced: string | null): CsvHeader | null {
  const headers = (announced === null ? delimiters : [announced])
    .map((delimiter) => ({ delimiter, columns: fieldsOf(text, delimiter).map((name) => columnNamed(name)) }))
    .filter(({ columns }) => columns.includes('title'))
  return headers.toSorted((a, b) => b.columns.length - a.columns.length)[0] ?? null
}

export function announcedDelimiter(text: string): string | null {
  return SEPARATOR.exec(text)?.[1] ?? null
}

function columnNamed(name: string): Column | null {
  return columnOf.get(name.toLowerCase().replace(/[^a-z0-9]/g, '')) ?? null
}

function fieldsOf(text: string, delimiter: string): readonly string[] {
  let fields: readonly string[] = []
  const rows = csvRows(delimiter, (row) => {
    if (row.kind === 'row') fields = row.fields
  })
  rows.push({ number: 1, text })
  return fields
}

/** Everything below the header. */
export function csvParser({ delimiter, columns }: CsvHeader, emit: Emit): LineParser {
  return csvRows(delimiter, (row) => {
    if (row.kind === 'broken') emit(row)
    else if (row.fields.some((field) => field.trim() !== '')) read(row)
  })

  function read({ line, fields }: Row & { kind: 'row' }): void {
    const extra = fields.slice(columns.length)
    if (fields.length < columns.length || extra.some((field) => field.trim() !== '')) {
      const reason = `has ${fields.length} fields where the header has ${columns.length}`
      return emit({ kind: 'broken', line, reason })
    }
    const title = first('title')?.replace(/\s+/g, ' ') ?? null
    if (title === null) return emit({ kind: 'broken', line, reason: noTitle })
    const url = first('url')
    emit({
      kind: 'reference',
      line,
      reference: {
        type: first('type'),
        title,
        authors: all('authors').flatMap(authorsOf),
        year: yearOf(first('year')),
        journal: first('journal'),
        volume: first('volume'),
        issue: first('issue'),
        pages: first('pages') ?? pagesOf(first('firstPage'), first('lastPage')),
        doi: doiOf(first('doi')) ?? doiOf(url),
        pmid: /^\d+$/.exec(first('pmid') ?? '')?.[0] ?? null,
        url,
        abstract: first('abstract'),
        keywords: all('keywords').flatMap((value) => parts(value, value.includes(';') ? ';' : ',')),
      },
    })

    function all(column: Column): readonly string[] {
      return fields.flatMap((value, at) => (columns[at] === column && value.trim() !== '' ? [value.trim()] : []))
    }

    function first(column: Column): string | null {
      return all(column)[0] ?? null
    }
  }
}

/** `Smith J`: a name and initials, so that a comma behind it separates people and not the parts of one name. */
const INITIALED = /^\p{L}[\p{L}'’\- ]* \p{Lu}[\p{Lu}.\- ]*$/u

function authorsOf(value: string): readonly string[] {
  for (const separator of [';', '|', '\n']) if (value.includes(separator)) return parts(value, separator)
  const byComma = parts(value.replace(/\.$/, ''), ',')
  return byComma.length > 1 && byComma.every((name) => INITIALED.test(name)) ? byComma : [value]
}

function parts(value: string, separator: string): readonly string[] {
  return value
    .split(separator)
    .map((part) => part.trim())
    .filter((part) => part !== '')
}
