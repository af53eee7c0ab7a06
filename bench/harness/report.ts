import type { Goal, Row } from './compare.ts'
import { decidingBound, number } from './compare.ts'

/** The table for people. */
export function table(rows: readonly Row[]): string {
  const head = ['', 'figure', 'ours', 'other', 'ratio', '95 %', 'goal', '']
  const lines = rows.map((row, index) => {
    const { estimate, goal } = row
    const isRatio = row.of === 'ratio'
    return [
      rows[index - 1]?.comparison === row.comparison ? '' : row.comparison,
      row.label,
      number(row.ours),
      row.other === null ? '' : number(row.other),
      isRatio ? number(estimate.median) : '',
      `${number(estimate.low)} … ${number(estimate.high)}`,
      goal === null ? '' : goalText(goal),
      goal === null ? '' : row.pass ? 'reached' : 'MISSED',
    ]
  })
  return columns(head, lines, [0, 1, 7])
}

/** Lines of cells under a head; the columns named by `left` begin at their left end, and figures stand at the right. */
export function columns(
  head: readonly string[],
  lines: readonly (readonly string[])[],
  left: readonly number[],
): string {
  const widths = head.map((_, column) => Math.max(...[head, ...lines].map((line) => (line[column] ?? '').length)))
  const text = (line: readonly string[]) =>
    line
      .map((cell, at) => (left.includes(at) ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join('  ')
  return [text(head), widths.map((width) => '─'.repeat(width)).join('  '), ...lines.map(text)]
    .map((line) => line.trimEnd())
    .join('\n')
}

function goalText(goal: Goal): string {
  return 'atLeast' in goal ? `≥ ${number(goal.atLeast)}` : `≤ ${number(goal.atMost)}`
}

/** One line for machines. `ratios` are medians; what decided stands in `bounds`. */
export function jsonLine(bench: string, rows: readonly Row[], about: { readonly isResult: boolean }): string {
  const judged = rows.filter((row) => row.goal !== null)
  const entry = (row: Row, value: number) => [`${row.comparison}: ${row.label}`, Number(value.toPrecision(4))] as const
  return JSON.stringify({
    bench,
    ratios: Object.fromEntries(judged.map((row) => entry(row, row.estimate.median))),
    bounds: Object.fromEntries(judged.map((row) => entry(row, decidingBound(row.estimate, row.goal as Goal)))),
    ...(about.isResult ? {} : { notAResult: true }),
    pass: judged.length > 0 && judged.every((row) => row.pass),
  })
}
