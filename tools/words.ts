import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { capture, root } from './command.ts'
import { oddWordsIn } from './plain-words.ts'

/**
 * What may stand nowhere in the repository. The patterns are written so that this file does not break its own rules.
 */
const banned: readonly { pattern: RegExp; why: string }[] = [
  { pattern: /exactly[\s_-]*[o]nce/i, why: 'is a promise that no system can keep; say "effectively once"' },
  {
    pattern: /registry\.[n]pmjs|[d]eb\.debian\.org/i,
    why: 'names a registry; where packages come from is each machine’s own setting',
  },
  { pattern: /(?<![\w.])\/(?:[r]oot|[w]ork|[h]ome)\/\w/, why: 'is a path of one machine' },
]

const { ok, output } = await capture('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'])
if (!ok) throw new Error(output)
for (const path of output.split('\0').filter((line) => line !== '')) {
  const text = read(path)
  for (const { line, word, instead } of oddWordsIn(text)) {
    console.error(`${path}:${line}: "${word}": ${instead}`)
    process.exitCode = 1
  }
  for (const { pattern, why } of banned) {
    const found = pattern.exec(text)?.[0]
    if (found === undefined) continue
    console.error(`${path}: "${found}" ${why}`)
    process.exitCode = 1
  }
}

function read(path: string): string {
  try {
    return readFileSync(join(root, path), 'utf8')
  } catch {
    // Listed by git but deleted in the working tree: nothing to read.
    return ''
  }
}
