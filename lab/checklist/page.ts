import { posix } from 'node:path'
import type { Row, Test } from './row.ts'

export const PAGE = 'docs/reference/checklist.md'

const head = `---
title: What is tested
group: Reference
---
# Every promise, and the tests that fail without it

Each row is a promise, a rule in the code that keeps it, and tests that fail when that rule is taken out.
\`npm run lab -- checklist\` takes the rules out one by one and runs the tests; this page is written from the same list
(\`npm run lab -- checklist --page\`), and a test compares the two.
`

/** By the letter that their ids begin with. */
const sections = {
  G: 'Duplicate messages are not sent',
  O: 'Messages come once and in order',
  S: 'Imports ignore duplicate events',
  R: 'Requests are safe to repeat',
  E: 'Runs survive crashes',
  F: 'Short ways keep every promise',
}

const columns = `
| | promise | without the rule that … | … these tests fail |
|---|---|---|---|
`

/** The list as people read it. */
export function pageOf(rows: readonly Row[]): string {
  const parts = Object.entries(sections).map(([letter, title]) => {
    const lines = rows.filter(({ id }) => id.startsWith(letter)).flatMap(linesOf)
    return `\n## ${title}\n${columns}${lines.join('\n')}\n`
  })
  return head + parts.join('')
}

function linesOf({ id, promise, removals }: Row): string[] {
  return removals.map(({ without, file, noticed }, index) => {
    const cells = [
      index === 0 ? id : '',
      index === 0 ? promise : '',
      `${without} (${linkTo(file)})`,
      noticed.map(testCell).join('<br>'),
    ]
    return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  })
}

function testCell({ file, name }: Test): string {
  return `${linkTo(file)}: ${name}`
}

function linkTo(file: string): string {
  return `[${posix.basename(file)}](${posix.relative(posix.dirname(PAGE), file)})`
}
