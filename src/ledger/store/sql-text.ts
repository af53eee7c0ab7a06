/** How PostgreSQL reads a text: what is code, and what only looks like it inside of strings, names and comments. */

type PieceKind = 'code' | 'quoted' | 'comment'

interface Piece {
  readonly kind: PieceKind
  readonly text: string
}

/** Where something that is not code may begin. The letters are part of it where they stand directly before a quote. */
const OPENING = /--|\/\*|"|'|\$/g
const DOLLAR_QUOTE = /\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$/uy
const NAME_CHARACTER = /[\p{L}\p{N}_$]/u
const ESCAPE_STRING = /(?<![\p{L}\p{N}_$])e$/iu

function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = []
  let from = 0
  let at = 0
  const take = (kind: PieceKind, to: number) => {
    if (to > from) pieces.push({ kind, text: text.slice(from, to) })
    from = to
  }
  for (;;) {
    OPENING.lastIndex = at
    const found = OPENING.exec(text)
    if (found === null) break
    const end = endOf(text, found.index, from)
    if (end === null) {
      at = found.index + 1
      continue
    }
    take('code', found.index)
    take(found[0] === '--' || found[0] === '/*' ? 'comment' : 'quoted', end)
    at = end
  }
  take('code', text.length)
  return pieces
}

/** Where the string, name or comment ends that begins here; null where none begins. What is not closed goes to the end. */
function endOf(text: string, at: number, codeFrom: number): number | null {
  const next = text[at + 1]
  switch (text[at]) {
    case "'":
      return endOfQuoted(text, at, ESCAPE_STRING.test(text.slice(Math.max(codeFrom, at - 2), at)))
    case '"':
      return endOfQuoted(text, at, false)
    case '-':
      return next === '-' ? endOfLine(text, at) : null
    case '/':
      return next === '*' ? endOfComment(text, at) : null
    default: {
      if (at > 0 && NAME_CHARACTER.test(text[at - 1] ?? '')) return null
      DOLLAR_QUOTE.lastIndex = at
      const tag = DOLLAR_QUOTE.exec(text)?.[0]
      if (tag === undefined) return null
      const close = text.indexOf(tag, at + tag.length)
      return close === -1 ? text.length : close + tag.length
    }
  }
}

/** A doubled quote stands for one; with `escapes` a backslash takes the next character with it. */
function endOfQuoted(text: string, from: number, escapes: boolean): number {
  const quote = text[from]
  for (let at = from + 1; at < text.length; at++) {
    if (escapes && text[at] === '\\') at += 1
    else if (text[at] === quote) {
      if (text[at + 1] !== quote) return at + 1
      at += 1
    }
  }
  return text.length
}

/** Comments nest, as the standard says. */
function endOfComment(text: string, from: number): number {
  const marks = /\/\*|\*\//g
  marks.lastIndex = from
  let depth = 0
  for (let found = marks.exec(text); found !== null; found = marks.exec(text)) {
    depth += found[0] === '/*' ? 1 : -1
    if (depth === 0) return marks.lastIndex
  }
  return text.length
}

/** A carriage return alone ends a line, too. */
function endOfLine(text: string, from: number): number {
  const ends = /[\n\r]/g
  ends.lastIndex = from
  return ends.exec(text)?.index ?? text.length
}

/** Turns `?` into `$1`, `$2`, … outside of strings, quoted names and comments. `??` is a `?`, for operators of jsonb. */
export function numberPlaceholders(text: string): string {
  let count = 0
  const numbered = (code: string) => code.replace(/\?\??/g, (found) => (found === '?' ? `$${++count}` : '?'))
  return piecesOf(text)
    .map((piece) => (piece.kind === 'code' ? numbered(piece.text) : piece.text))
    .join('')
}

/** A statement that begins or ends a transaction or a part of one. */
export type TransactionControl =
  | { readonly kind: 'begin'; readonly isolation: string | null }
  | { readonly kind: 'commit' | 'rollback' }
  | { readonly kind: 'savepoint' | 'release' | 'rollback_to'; readonly name: string }
  /** One that has no counterpart inside of a transaction, or that stands beside other statements. */
  | { readonly kind: 'refused'; readonly statement: string }

/** Almost every text has none of these words, and is not looked at any further. */
const ANY_CONTROL = /\b(?:begin|start|commit|end|rollback|abort|savepoint|release|prepare)\b/i
const CONTROL = /^(?:begin|start\s+transaction|commit|end|rollback|abort|savepoint|release|prepare\s+transaction)\b/i
const WORK = String.raw`(?:\s+(?:work|transaction))?`
const ENDS = String.raw`${WORK}(?:\s+and\s+no\s+chain)?$`
const NAME = String.raw`\s+("(?:[^"]|"")+"|[\p{L}_][\p{L}\p{N}_$]*)$`
const BEGIN = new RegExp(String.raw`^(?:begin${WORK}|start\s+transaction)\b(.*)$`, 'isu')
const ISOLATION = /isolation\s+level\s+(serializable|repeatable\s+read|read\s+committed|read\s+uncommitted)/i
const FORMS = {
  commit: new RegExp(`^(?:commit|end)${ENDS}`, 'iu'),
  rollback: new RegExp(`^(?:rollback|abort)${ENDS}`, 'iu'),
  savepoint: new RegExp(`^savepoint${NAME}`, 'iu'),
  release: new RegExp(String.raw`^release(?:\s+savepoint)?${NAME}`, 'iu'),
  rollback_to: new RegExp(String.raw`^rollback${WORK}\s+to(?:\s+savepoint)?${NAME}`, 'iu'),
} as const

/** What the text does to the transaction; null when it only works inside of it. */
export function transactionControlOf(text: string): TransactionControl | null {
  if (!ANY_CONTROL.test(text)) return null
  const statements = statementsOf(text)
  const control = statements.find((statement) => CONTROL.test(statement))
  if (control === undefined) return null
  const refused = { kind: 'refused', statement: control } as const
  if (statements.length > 1) return refused
  const begin = BEGIN.exec(control)
  if (begin !== null) return { kind: 'begin', isolation: ISOLATION.exec(begin[1] ?? '')?.[1] ?? null }
  for (const kind of ['commit', 'rollback'] as const) if (FORMS[kind].test(control)) return { kind }
  for (const kind of ['savepoint', 'release', 'rollback_to'] as const) {
    const name = FORMS[kind].exec(control)?.[1]
    if (name !== undefined) return { kind, name: nameOf(name) }
  }
  return refused
}

/** Without comments. */
function statementsOf(text: string): string[] {
  const statements: string[] = []
  let current = ''
  for (const piece of piecesOf(text)) {
    if (piece.kind !== 'code') {
      current += piece.kind === 'comment' ? ' ' : piece.text
      continue
    }
    const [first = '', ...others] = piece.text.split(';')
    current += first
    for (const other of others) {
      statements.push(current.trim())
      current = other
    }
  }
  return [...statements, current.trim()].filter((statement) => statement !== '')
}

/** As the server takes it: without its quotes, or in lower case. */
function nameOf(written: string): string {
  return written.startsWith('"') ? written.slice(1, -1).replaceAll('""', '"') : written.toLowerCase()
}
