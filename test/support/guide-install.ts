import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { root } from '../../tools/command.ts'

/** `npm install` of a reader of a guide: node guide-install.ts PACKAGES ONCEONLY install [packages…], in its folder. */
const [packages = '', onceonly = '', , ...args] = process.argv.slice(2)
const locked = join(packages, 'node_modules')
const ours = join(root, 'node_modules')
const modules = join(process.cwd(), 'node_modules')

if (!existsSync(modules)) {
  mkdirSync(modules)
  // New projects of Nest have TypeScript 6, as we do; `croner` is what the package itself depends on.
  for (const name of ['typescript', 'croner']) link(ours, name)
  for (const name of packagesIn(locked)) if (name !== 'onceonly') link(locked, name)
  cpSync(onceonly, join(modules, 'onceonly'), { recursive: true })
  // A new project of Nest names these types, for tests that nothing here runs.
  mkdirSync(join(modules, 'vitest'))
  writeFileSync(join(modules, 'vitest', 'globals.d.ts'), '')
}
// What is not locked for the guide is a dependency of the repository, or is missing.
for (const name of args.filter((arg) => !arg.startsWith('-'))) link(ours, name)

function packagesIn(folder: string): readonly string[] {
  const names = readdirSync(folder)
  return names.flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(folder, name)).map((each) => join(name, each)) : name,
  )
}

function link(from: string, name: string): void {
  const place = join(modules, name)
  if (existsSync(place)) return
  if (!existsSync(join(from, name))) throw new Error(`${name} is in neither ${locked} nor ${ours}`)
  mkdirSync(dirname(place), { recursive: true })
  symlinkSync(join(from, name), place)
}
