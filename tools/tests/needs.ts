import { readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { root } from '../command.ts'
import { SERVER_KINDS, SERVER_VARIABLES, type ServerKind } from '../servers/index.ts'

/** PostgreSQL starts within a second and nearly everything wants it. */
const always: readonly ServerKind[] = ['postgres']

/**
 * Which servers a run needs, so that it does not wait for one that no test uses: those whose variable is named by a test
 * file, or by what it imports. The tools are left out, because they know every server and need none.
 */
export function neededServers(files: readonly string[]): ServerKind[] {
  const seen = new Set<string>()
  const waiting = [...files]
  const needed = new Set(always)
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (seen.has(file)) continue
    seen.add(file)
    const text = readOrNothing(file)
    for (const kind of SERVER_KINDS) if (text.includes(SERVER_VARIABLES[kind])) needed.add(kind)
    waiting.push(...localImports(file, text).filter((path) => !path.startsWith('tools/')))
  }
  return SERVER_KINDS.filter((kind) => needed.has(kind))
}

function localImports(file: string, text: string): string[] {
  const paths = text.matchAll(/\b(?:from|import) '(\.[^']+\.ts)'/g)
  return [...paths].map(([, path = '']) => normalize(join(dirname(file), path)))
}

/** A text that names a file need not mean it: an import inside of a string leads nowhere. */
function readOrNothing(file: string): string {
  try {
    return readFileSync(join(root, file), 'utf8')
  } catch {
    return ''
  }
}
