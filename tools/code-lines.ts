export interface CodeLine {
  readonly text: string
  /** From 1. */
  readonly number: number
}

/** The lines of a program without empty ones and without comments that have lines of their own. */
export function codeLinesOf(text: string): CodeLine[] {
  const lines: CodeLine[] = []
  let isComment = false
  for (const [at, line] of text.split('\n').entries()) {
    const bare = line.trim()
    if (!isComment && bare.startsWith('/*')) isComment = true
    if (!isComment && bare !== '' && !bare.startsWith('//')) lines.push({ text: bare, number: at + 1 })
    if (isComment && bare.endsWith('*/')) isComment = false
  }
  return lines
}
