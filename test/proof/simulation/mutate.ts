import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Focus } from '../../../lab/simulation/scenario.ts'

/** One protective rule, removed from the source on purpose. */
export interface Mutant {
  /** What is not true any more. */
  readonly name: string
  readonly file: string
  /** Must stand in the file once, so that a mutant that lost its target is noticed. */
  readonly find: string
  readonly replace: string
  /** Where the rule protects from a rare coincidence, what makes it less rare. */
  readonly focus?: Focus
}

const root = new URL('../../../', import.meta.url)
const QUERY = '?mutant='
const mutants = new Map<string, Mutant>()

/**
 * Loads a module, and every source file that it imports, with one change in the source. Every mutant gets a copy of the
 * whole graph of its own, distinguished by a query, so that many of them fit into one process.
 */
export async function importMutated<T>(path: string, mutant: Mutant): Promise<T> {
  const source = readFileSync(new URL(mutant.file, root), 'utf8')
  const found = source.split(mutant.find).length - 1
  if (found !== 1) throw new Error(`${mutant.name}: its target stands ${found} times in ${mutant.file}`)
  if (mutants.size === 0) hook()
  const name = String(mutants.size + 1)
  mutants.set(name, mutant)
  return (await import(`${new URL(path, root).href}${QUERY}${name}`)) as T
}

function hook(): void {
  registerHooks({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context)
      const name = context.parentURL?.split(QUERY)[1]
      const ours = resolved.url.startsWith(root.href) && !resolved.url.includes('/node_modules/')
      return name === undefined || !ours ? resolved : { ...resolved, url: `${resolved.url}${QUERY}${name}` }
    },
    load(url, context, next) {
      const loaded = next(url, context)
      const mutant = mutants.get(url.split(QUERY)[1] ?? '')
      if (
        mutant === undefined ||
        fileURLToPath(url.split('?')[0] ?? '') !== fileURLToPath(new URL(mutant.file, root))
      ) {
        return loaded
      }
      const source = String(loaded.source).replace(mutant.find, () => mutant.replace)
      return { ...loaded, source }
    },
  })
}
