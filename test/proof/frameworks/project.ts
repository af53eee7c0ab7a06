import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { pathToFileURL } from 'node:url'
import ts from 'typescript'
import { installOwnPackages } from '../../support/own-packages.ts'

const app = join(import.meta.dirname, 'app')

export interface Project {
  /** Why its packages could not be had, or false. */
  readonly missing: string | false
  /** What the compiler complains about, with the options that users of Nest have. */
  complaints(): readonly string[]
  /** Of a compiled file. */
  path(name: string): string
  /** Loads a compiled file, whose tests become tests of this one. */
  load(name: string): Promise<unknown>
}

/** Decorators are no syntax that Node strips, so a project of Nest is compiled, as its users compile theirs. */
const options = {
  strict: true,
  target: 'es2022',
  lib: ['es2024', 'esnext.disposable', 'esnext.collection', 'esnext.iterator'],
  module: 'nodenext',
  types: ['node'],
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  customConditions: ['onceonly-source'],
  allowImportingTsExtensions: true,
  skipLibCheck: true,
  noEmit: true,
}

/** @param more further files, by name: the code of a guide */
export async function openProject(
  names: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<Project> {
  const missing = await installOwnPackages(app)
  if (missing !== false) {
    return { missing, complaints: () => [], path: (name) => name, load: async () => undefined }
  }
  const folder = mkdtempSync(join(tmpdir(), 'onceonly-frameworks-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  mkdirSync(join(folder, 'dist'))
  const packages = join(app, 'node_modules')
  symlinkSync(packages, join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, include: ['*.ts'] }))
  for (const name of names) cpSync(join(app, name), join(folder, name))
  for (const [name, text] of Object.entries(more)) writeFileSync(join(folder, name), text)
  for (const name of readdirSync(folder).filter((each) => each.endsWith('.ts'))) transpile(folder, name)
  const compiled = (name: string) => join(folder, 'dist', name.replace(/\.ts$/, '.js'))
  return {
    missing: false,
    complaints: () => complaintsOf(folder, join(packages, '.bin', 'tsc')),
    path: compiled,
    load: (name) => import(pathToFileURL(compiled(name)).href),
  }
}

function transpile(folder: string, name: string): void {
  const { outputText } = ts.transpileModule(readFileSync(join(folder, name), 'utf8'), {
    fileName: name,
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.ESNext,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
    },
  })
  const file = join(folder, 'dist', name.replace(/\.ts$/, '.js'))
  writeFileSync(file, outputText.replaceAll(/(from '\.\/[^']+)\.ts'/g, "$1.js'"))
}

function complaintsOf(folder: string, compiler: string): readonly string[] {
  try {
    execFileSync(process.execPath, [compiler, '-p', folder, '--pretty', 'false'], { cwd: folder, encoding: 'utf8' })
    return []
  } catch (error) {
    const { stdout } = error as { readonly stdout?: string }
    if (stdout === undefined || stdout === '') throw error
    return stdout.split('\n').filter((line) => /error TS/.test(line))
  }
}
