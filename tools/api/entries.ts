import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { root } from '../command.ts'

/** One name that an entry of the package exports. */
export interface ExportedName {
  readonly name: string
  readonly symbol: ts.Symbol
}

export interface Entry {
  /** The name that users import, for example `onceonly/postgres`. */
  readonly name: string
  readonly file: string
  readonly exports: readonly ExportedName[]
}

export interface Surface {
  readonly program: ts.Program
  readonly checker: ts.TypeChecker
  readonly entries: readonly Entry[]
}

/** The entries of the package by the name that users import, with their source files. */
export function entryFiles(): ReadonlyMap<string, string> {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>
  }
  const found = new Map<string, string>()
  for (const [name, target] of Object.entries(exports)) {
    if (typeof target === 'string') continue
    found.set(name.replace('.', 'onceonly'), (target['onceonly-source'] ?? '').replace('./', ''))
  }
  return found
}

/** Reads what every entry exports, with each name resolved to its declaration. */
export function readSurface(): Surface {
  const files = entryFiles()
  const config = ts.getParsedCommandLineOfConfigFile(
    join(root, 'tsconfig.build.json'),
    {},
    {
      ...ts.sys,
      onUnRecoverableConfigFileDiagnostic: ({ messageText }) => {
        throw new Error(ts.flattenDiagnosticMessageText(messageText, '\n'))
      },
    },
  )
  if (config === undefined) throw new Error('tsconfig.build.json cannot be read.')
  const program = ts.createProgram(
    [...files.values()].map((file) => join(root, file)),
    {
      ...config.options,
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
    },
  )
  const checker = program.getTypeChecker()
  const entries = [...files].map(([name, file]) => {
    const source = program.getSourceFile(join(root, file))
    const module = source && checker.getSymbolAtLocation(source)
    if (module === undefined) throw new Error(`${file}, the entry ${name}, exports nothing.`)
    const exports = checker
      .getExportsOfModule(module)
      .map((symbol) => ({ name: symbol.name, symbol: resolved(checker, symbol) }))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
    return { name, file, exports }
  })
  return { program, checker, entries }
}

function resolved(checker: ts.TypeChecker, symbol: ts.Symbol): ts.Symbol {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
}
