import { styleText } from 'node:util'

/** What a command answers: as data for programs, as text for people. */
export interface Shown {
  readonly data: unknown
  readonly text: string
  /** 1 when something needs attention, or nothing was found. */
  readonly status?: 0 | 1
}

export type Colour = Parameters<typeof styleText>[0]

/** Colours only at a terminal, and not where they were switched off. */
export function paint(colour: Colour, text: string): string {
  return process.stdout.isTTY && process.env['NO_COLOR'] === undefined ? styleText(colour, text) : text
}

export type Cell = string | number | null

/** Left-aligned texts and right-aligned numbers. On a terminal the last column is cut at its edge. */
export function table(heads: readonly string[], rows: readonly (readonly Cell[])[], empty: string): string {
  if (rows.length === 0) return empty
  const texts = rows.map((row) => row.map((cell) => (cell === null ? '-' : plain(String(cell)))))
  const widths = heads.map((head, column) => Math.max(head.length, ...texts.map((row) => row[column]?.length ?? 0)))
  const isNumber = heads.map((_, column) => rows.every((row) => typeof row[column] === 'number'))
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => (isNumber[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd()
  const most = process.stdout.isTTY ? (process.stdout.columns ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY
  return [paint('bold', cut(line(heads), most)), ...texts.map((row) => cut(line(row), most))].join('\n')
}

/** Without control characters: a stored key must not move the cursor or change a colour. */
export function plain(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '�')
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`
}

/** Names and values. Values may be coloured, so the caller passes stored texts through `plain`. */
export function pairs(rows: readonly (readonly [name: string, value: Cell])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `${paint('gray', name.padEnd(width))}  ${value ?? '-'}`).join('\n')
}

const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const

/** `3 min`, `2 d`: how long ago, or how long. */
export function span(ms: number): string {
  for (const [unit, name] of UNITS) if (Math.abs(ms) >= unit) return `${Math.round(ms / unit)} ${name}`
  return `${Math.round(ms)} ms`
}

export function iso(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString()
}
