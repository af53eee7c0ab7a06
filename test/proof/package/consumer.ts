import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { examplesOf } from '../../support/examples.ts'
import { installOwnPackages } from '../../support/own-packages.ts'
import { npm, root } from './packed.ts'
import { addPrograms, link } from './programs.ts'

/** The oldest compiler that we promise, the one of this repository, and the native one. */
export const compilers = { 'TypeScript 5.9': '5.9.3', 'TypeScript 6': '6.0.3', 'TypeScript 7': '7.0.2' } as const

/** What a strict project of today has, without `skipLibCheck`, and with declarations of its own. */
const compilerOptions = {
  strict: true,
  target: 'es2022',
  lib: ['es2022'],
  module: 'nodenext',
  types: ['node'],
  declaration: true,
  emitDeclarationOnly: true,
  outDir: 'declarations',
  allowImportingTsExtensions: true,
  // As Nest wants it.
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
}

const borrowed = [
  '@koa/router',
  '@nats-io',
  '@types',
  'drizzle-orm',
  'express',
  'fastify',
  'hono',
  'ioredis',
  'koa',
  'kysely',
  'mariadb',
  'pg',
  'rabbitmq-client',
  'ws',
] as const

/** From the packages that only tests need. */
const frameworks = ['@nestjs', 'reflect-metadata', 'rxjs'] as const

/** What the README leaves to its reader. */
const readersOwn = `
const order = { cents: 100 }
const bank = {
  capture: async (payment: { cents: number }, { idempotencyKey }: { idempotencyKey: string }) => ({ ...payment, idempotencyKey }),
}
`

/**
 * A project of a user, outside of the repository: the installed package, routes for every framework, the code of the
 * README and of the start page, the programs that the other pages quote, and every \`@example\` that an editor shows.
 * Answers the folders of those that have packages of their own.
 */
export async function writeConsumer(folder: string, installed: string): Promise<readonly string[]> {
  mkdirSync(join(folder, 'node_modules'), { recursive: true })
  for (const name of borrowed) link(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  const own = join(import.meta.dirname, '../frameworks/app')
  if ((await installOwnPackages(own)) === false) {
    for (const name of frameworks) link(join(own, 'node_modules', name), join(folder, 'node_modules', name))
  }
  const { dependencies } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>
  }
  for (const name of Object.keys(dependencies)) {
    link(join(dirname(installed), name), join(folder, 'node_modules', name))
  }
  // A copy: our declarations must find the frameworks of this project.
  const addPackage = (modules: string) => {
    for (const part of ['package.json', 'dist']) {
      cpSync(join(installed, part), join(modules, 'onceonly', part), { recursive: true })
    }
  }
  addPackage(join(folder, 'node_modules'))
  const added = await addPrograms(folder, addPackage)
  const write = (file: string, text: string) => writeFileSync(join(folder, file), text)
  write('package.json', JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
  write(
    'tsconfig.json',
    JSON.stringify({ compilerOptions, include: ['*.ts', ...['examples', ...added].map((name) => `${name}/**/*.ts`)] }),
  )
  cpSync(join(import.meta.dirname, 'consumer'), folder, { recursive: true })
  write('readme.ts', [readersOwn, ...blocksOf('README.md', 'ts')].join('\n'))
  write('start.ts', blocksOf('docs/start.md', 'js').join('\n'))
  // What the pages quote, whole.
  cpSync(join(root, 'examples'), join(folder, 'examples'), { recursive: true })
  for (const [index, { file, example }] of examplesIn(installed).entries()) {
    const isOfOrm = file.includes('/orms/')
    if (isOfOrm && !added.includes('orms')) continue
    write(`${isOfOrm ? 'orms/' : ''}example-${index}.ts`, `${example}\nexport {}\n`)
  }
  return added
}

/** The complaints about the project itself and about our declarations; those of other packages are not ours. */
export function compile(folder: string, compiler: string): readonly string[] {
  try {
    execFileSync(process.execPath, [compiler, '-p', folder, '--pretty', 'false'], { cwd: folder, encoding: 'utf8' })
    return []
  } catch (error) {
    const { stdout } = error as { readonly stdout?: string }
    if (stdout === undefined || stdout === '') throw error
    const complaints = stdout.split('\n').filter((line) => /^\S.*error TS/.test(line))
    assert.notEqual(complaints.length, 0, stdout)
    return complaints.filter((line) => !line.includes('node_modules/') || line.includes('node_modules/onceonly/'))
  }
}

export interface Compilers {
  pathOf(version: string): string
  /** Why they could not be had, or false. */
  readonly missing: string | false
}

export function fetchCompilers(folder: string): Compilers {
  const alias = (version: string) => `typescript-${version}`
  mkdirSync(folder)
  const pathOf = (version: string) => join(folder, 'node_modules', alias(version), 'bin', 'tsc')
  try {
    const wanted = Object.values(compilers).map((version) => `${alias(version)}@npm:typescript@${version}`)
    npm(folder, ['install', '--no-save', '--prefix', folder, ...wanted])
    return { pathOf, missing: false }
  } catch (error) {
    if (process.env['CI'] === 'true') throw error
    return { pathOf, missing: 'the compilers could not be fetched' }
  }
}

function blocksOf(page: string, language: string): readonly string[] {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, code]) => code ?? '')
}

/** The blocks after `@example` in the declarations that are published. */
function examplesIn(installed: string): readonly { readonly file: string; readonly example: string }[] {
  return globSync('dist/**/*.d.ts', { cwd: installed })
    .toSorted()
    .flatMap((file) => examplesOf(readFileSync(join(installed, file), 'utf8')).map((example) => ({ file, example })))
}
