import { relative } from 'node:path'
import type ts from 'typescript'
import { root } from '../command.ts'
import type { Surface } from './entries.ts'

/** Every adapter has these: the same function for another framework, so that a guide reads the same for all of them. */
const perFramework: ReadonlySet<string> = new Set(['createProtect', 'operationStatus'])

/** Names that two entries export for two different things. */
export function doubleMeanings({ entries }: Surface): readonly string[] {
  const found = new Map<string, Map<ts.Symbol, string>>()
  for (const entry of entries) {
    for (const { name, symbol } of entry.exports) {
      const meanings = found.get(name) ?? new Map<ts.Symbol, string>()
      meanings.set(
        symbol,
        `${entry.name} (${relative(root, symbol.declarations?.[0]?.getSourceFile().fileName ?? '')})`,
      )
      found.set(name, meanings)
    }
  }
  return [...found]
    .filter(([name, meanings]) => meanings.size > 1 && !perFramework.has(name))
    .map(([name, meanings]) => `\`${name}\` has ${meanings.size} meanings: ${[...meanings.values()].join(', ')}.`)
}
