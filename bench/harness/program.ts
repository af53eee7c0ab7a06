import type { Figures } from './figures.ts'

/** The other end of `runSide`: a side reads its task, measures, and answers with one line. */
export function readTask<Task>(): Task {
  const text = process.argv[2]
  if (text === undefined) throw new Error('This program is a side of a benchmark: npm run bench -- NAME starts it.')
  return JSON.parse(text) as Task
}

export function answer(figures: Figures): void {
  process.stdout.write(`${JSON.stringify(figures)}\n`)
}

/** Figures of something that did not do its work are worth nothing. */
export function mustEqual(what: string, actual: unknown, expected: unknown): void {
  if (actual !== expected) throw new Error(`${what}: ${String(actual)} instead of ${String(expected)}.`)
}
