import ts from 'typescript'
import type { Entry, Surface } from './entries.ts'

/** The declarations of one entry as text: one block per name, sorted, without comments and bodies. */
export function reportOf(entry: Entry, surface: Surface): string {
  const declared = declarationsOf(surface)
  const blocks = entry.exports.map(({ name, symbol }) => {
    const own = symbol.declarations?.[0]
    if (own === undefined) throw new Error(`${name} of ${entry.name} has no declaration.`)
    const renamed = symbol.name === name ? '' : `// exported as ${name}\n`
    return renamed + declared(own.getSourceFile(), symbol.name)
  })
  return `${[`// ${entry.name}`, ...blocks].join('\n\n')}\n`
}

type Declared = (file: ts.SourceFile, name: string) => string

const readers = new WeakMap<Surface, Declared>()

/** Reads names from the declaration files that the compiler makes, each of which is made once. */
function declarationsOf(surface: Surface): Declared {
  const known = readers.get(surface)
  if (known !== undefined) return known
  const printer = ts.createPrinter({ removeComments: true })
  const files = new Map<ts.SourceFile, ts.SourceFile>()

  function emitted(source: ts.SourceFile): ts.SourceFile {
    const made = files.get(source)
    if (made !== undefined) return made
    let text = ''
    const write: ts.WriteFileCallback = (path, written) => {
      if (path.endsWith('.d.ts')) text = written
    }
    surface.program.emit(source, write, undefined, true)
    const parsed = ts.createSourceFile(source.fileName, text, ts.ScriptTarget.Latest, true)
    files.set(source, parsed)
    return parsed
  }

  const read: Declared = (source, name) => {
    const parsed = emitted(source)
    const found = parsed.statements.filter((statement) => declares(statement, name))
    if (found.length === 0) throw new Error(`${name} is not found in the declarations of ${source.fileName}.`)
    return found.map((statement) => printer.printNode(ts.EmitHint.Unspecified, statement, parsed)).join('\n')
  }
  readers.set(surface, read)
  return read
}

function declares(statement: ts.Statement, name: string): boolean {
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.some((each) => ts.isIdentifier(each.name) && each.name.text === name)
  }
  const { name: own } = statement as ts.DeclarationStatement
  return own !== undefined && ts.isIdentifier(own) && own.text === name
}
