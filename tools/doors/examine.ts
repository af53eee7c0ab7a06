import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { cruise, type ICruiseResult } from 'dependency-cruiser'
import { rules } from './rules.ts'
import { rooms } from './table.ts'

export interface Examined {
  readonly modules: number
  readonly complaints: readonly string[]
}

/** Looks at every import of a tree, type-only ones included. */
export async function examine(baseDir: string): Promise<Examined> {
  const folders = ['src', 'service', 'console', 'test', 'bench', 'lab', 'tools', 'examples']
  const { output } = await cruise(
    folders.filter((folder) => existsSync(join(baseDir, folder))),
    {
      baseDir,
      validate: true,
      ruleSet: { forbidden: rules },
      tsPreCompilationDeps: true,
      doNotFollow: { path: 'node_modules' },
      // What tools make.
      exclude: { path: '^console/dist/|/generated/' },
      enhancedResolveOptions: {
        exportsFields: ['exports'],
        conditionNames: ['onceonly-source', 'types', 'import', 'node', 'default'],
        extensions: ['.ts', '.tsx', '.js', '.d.ts'],
      },
    },
  )
  if (typeof output === 'string') throw new Error(output)
  const own = output.modules.filter(({ source }) => folders.some((folder) => source.startsWith(`${folder}/`)))
  return { modules: own.length, complaints: [...homeless(own), ...closed(output)] }
}

/** A file of `src` in a room that the table does not know. */
function homeless(modules: ICruiseResult['modules']): string[] {
  const known = Object.keys(rooms).map((room) => `src/${room.replace('*', '')}`)
  return modules
    .filter(({ source }) => source.startsWith('src/') && !known.some((room) => source.startsWith(room)))
    .map(({ source }) => `${source} is in no room of tools/doors/table.ts`)
}

function closed(result: ICruiseResult): string[] {
  return result.summary.violations.map(({ rule, from, to, cycle }) => {
    const way = cycle === undefined ? to : cycle.map(({ name }) => name).join(' → ')
    return `${rule.name}: ${from} → ${way}`
  })
}
