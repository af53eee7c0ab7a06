import { cpSync, globSync, lstatSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { installOwnPackages } from '../../support/own-packages.ts'
import { installOrms } from '../orms/install.ts'

const proof = join(import.meta.dirname, '..')

interface Programs {
  /** Their folder in the project. */
  readonly name: string
  /** The folder of their lock file. */
  readonly app: string
  /** Answers why the packages could not be had, or false. */
  readonly install: (app: string) => Promise<string | false>
  /** What the project has of them: a pattern, and the folder that it stands in then. */
  readonly parts: readonly { readonly pattern: string; readonly from?: string; readonly to?: string }[]
}

/** The programs that the pages on ORMs, frameworks and peers quote, and what tests the types of `tx`. */
const all: readonly Programs[] = [
  { name: 'orms', app: 'orms/app', install: installOrms, parts: [{ pattern: '{*.ts,guide/*.ts,prisma-guide/**/*}' }] },
  {
    name: 'frameworks',
    app: 'frameworks/app',
    install: installOwnPackages,
    parts: [
      { pattern: '{trpc-guide,types,nest-guide/*}.ts' },
      // A guide that replaces some files of another one.
      { pattern: '*.ts', from: 'nest-guide', to: 'nest-typeorm' },
      { pattern: '*.ts', from: 'nest-guide/typeorm', to: 'nest-typeorm' },
    ],
  },
  { name: 'peers', app: 'peers/app', install: installOwnPackages, parts: [{ pattern: '*.ts' }] },
  {
    name: 'express4',
    app: 'http/express4',
    install: installOwnPackages,
    // The same routes, with the types of the older version.
    parts: [{ pattern: '{express,ledger}.ts', from: '../../package/consumer', to: '' }],
  },
]

/**
 * Copies them into a project, each folder with the packages that its own lock file installs and with the package itself.
 * Answers the folders that are there.
 */
export async function addPrograms(project: string, addPackage: (modules: string) => void): Promise<readonly string[]> {
  const added: string[] = []
  for (const { name, app: place, install, parts } of all) {
    const app = join(proof, place)
    if ((await install(app)) !== false) continue
    const modules = join(project, name, 'node_modules')
    for (const each of packagesIn(join(app, 'node_modules'))) link(join(app, 'node_modules', each), join(modules, each))
    addPackage(modules)
    for (const { pattern, from = '', to = from } of parts) {
      for (const file of globSync(pattern, { cwd: join(app, from), exclude: ['**/node_modules'] })) {
        const source = join(app, from, file)
        if (lstatSync(source).isFile()) cpSync(source, join(project, name, to, file))
      }
    }
    added.push(name)
  }
  return added
}

export function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true })
  symlinkSync(target, path)
}

/** All that are installed, ours apart. */
function packagesIn(modules: string): readonly string[] {
  return readdirSync(modules)
    .filter((name) => name !== 'onceonly' && (!name.startsWith('.') || name === '.prisma'))
    .flatMap((name) =>
      name.startsWith('@') ? readdirSync(join(modules, name)).map((each) => `${name}/${each}`) : [name],
    )
}
