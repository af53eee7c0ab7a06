import { existsSync, globSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { root } from '../command.ts'

/** Removes the declarations that no entry of the package leads to: nothing can import them. */
export function pruneDeclarations(folder: string): void {
  const reached = reachedFrom(entries(folder))
  for (const file of globSync('**/*.d.ts', { cwd: folder }).map((name) => join(folder, name))) {
    if (!reached.has(file)) rmSync(file)
  }
}

function entries(folder: string): string[] {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, { readonly types: string } | string>
  }
  return Object.values(exports).flatMap((entry) =>
    typeof entry === 'string' ? [] : [join(folder, entry.types.replace('./dist/', ''))],
  )
}

function reachedFrom(first: readonly string[]): ReadonlySet<string> {
  const reached = new Set<string>()
  const waiting = [...first]
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (reached.has(file)) continue
    reached.add(file)
    for (const [, path = ''] of readFileSync(file, 'utf8').matchAll(/(?:from|import\(|import) ?['"](\.[^'"]+)['"]/g)) {
      const target = join(dirname(file), path.replace(/\.[jt]s$/, '.d.ts'))
      if (!existsSync(target)) throw new Error(`${file} leads to ${path}, which is not there.`)
      waiting.push(target)
    }
  }
  return reached
}
