import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CodeLine } from './code-lines.ts'
import { codeLinesOf } from './code-lines.ts'
import { capture, root } from './command.ts'

/** Two places with the same lines of code, from their first to their last. */
export interface Copy {
  readonly a: Place
  readonly b: Place
  /** Lines of code: comments, empty lines, imports and closing tags are not counted. */
  readonly lines: number
}

interface Place {
  readonly path: string
  readonly from: number
  readonly to: number
}

/** So many lines that stand twice should be one function. */
const LEAST_LINES = 10

/** Copies of each other in some files. The formatter gives equal code equal lines, so that lines are compared. */
export function copiesIn(files: ReadonlyMap<string, string>, leastLines = LEAST_LINES): Copy[] {
  const codes = [...files].map(([path, text]) => ({ path, lines: withoutThin(codeLinesOf(text)) }))
  const firsts = new Map<string, { readonly file: (typeof codes)[number]; readonly at: number }>()
  const copies: Copy[] = []
  for (const file of codes) {
    for (let at = 0; at + leastLines <= file.lines.length; at++) {
      const block = file.lines.slice(at, at + leastLines)
      const key = block.map(({ text }) => text).join('\n')
      const first = firsts.get(key)
      if (first === undefined) {
        firsts.set(key, { file, at })
        continue
      }
      if (first.file === file && first.at + leastLines > at) continue
      let lines = leastLines
      while (isSame(first.file.lines[first.at + lines], file.lines[at + lines])) lines++
      const placeOf = ({ path, lines: all }: typeof file, from: number): Place => ({
        path,
        from: all[from]?.number ?? 0,
        to: all[from + lines - 1]?.number ?? 0,
      })
      copies.push({ a: placeOf(first.file, first.at), b: placeOf(file, at), lines })
      at += lines - 1
    }
  }
  return copies
}

function isSame(a: CodeLine | undefined, b: CodeLine | undefined): boolean {
  return a !== undefined && a.text === b?.text
}

/** Lists of imports are alike where the same parts are used, and so are the ends of nested elements of a page. */
function withoutThin(lines: readonly CodeLine[]): CodeLine[] {
  let isImport = false
  return lines.filter(({ text }) => {
    const stays = !isImport && !IMPORTS.test(text)
    isImport = !stays && !IMPORTED.test(text)
    return stays && !CLOSING_TAG.test(text)
  })
}

const IMPORTS = /^(import\b(?!\()|export (type )?\{)/
const CLOSING_TAG = /^<\/[\w.]*>$/
const IMPORTED = /^import '|\bfrom '[^']*'|^\}$/

async function main(): Promise<void> {
  const { ok, output } = await capture('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...SEARCHED])
  if (!ok) throw new Error(output)
  const paths = output.split('\n').filter((path) => existsSync(join(root, path)) && path !== '')
  if (paths.length === 0) throw new Error('No file was read.')
  const copies = copiesIn(new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')])))
  for (const { a, b, lines } of copies) {
    console.error(`${a.path}:${a.from}-${a.to} and ${b.path}:${b.from}-${b.to} are the same ${lines} lines.`)
    process.exitCode = 1
  }
}

/** Not examples, programs with packages of their own, and lists of rules: each of them is read by itself. */
const SEARCHED = [
  ...['src', 'service', 'console', 'tools', 'bench', 'test'].flatMap((folder) => [`${folder}/*.ts`, `${folder}/*.tsx`]),
  ':!test/proof/*/app/*',
]

if (import.meta.main) await main()
