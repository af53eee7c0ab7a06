import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { root } from '../command.ts'
import { mergeDeclarations } from './merge.ts'

/**
 * Removes the declarations that no entry of the package leads to, file by file and name by name: no user can import them,
 * and none that can be imported speaks of them. Most of the others are put into one file.
 */
export function pruneDeclarations(folder: string): void {
  const program = ts.createProgram(entries(folder), {
    module: ts.ModuleKind.NodeNext,
    noEmit: true,
    skipLibCheck: true,
    types: [],
  })
  const kept = reachedFrom(program, new Set(entries(folder)), folder)
  for (const file of globSync('**/*.d.ts', { cwd: folder }).map((name) => join(folder, name))) {
    const source = program.getSourceFile(file)
    const text = source === undefined ? '' : prunedText(source, kept)
    if (text === '') rmSync(file)
    else writeFileSync(file, text)
  }
  mergeDeclarations(folder, entries(folder))
}

function entries(folder: string): string[] {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, { readonly types: string } | string>
  }
  return Object.values(exports).flatMap((entry) =>
    typeof entry === 'string' ? [] : [join(folder, entry.types.replace('./dist/', ''))],
  )
}

/** A statement of a file, or one name of an import or export. */
type Item = ts.Statement | ts.ImportSpecifier | ts.ExportSpecifier

/** Its own names are not enough: an import leads to an export, which may lead to another one. */
type Checker = ts.TypeChecker & { getImmediateAliasedSymbol(symbol: ts.Symbol): ts.Symbol | undefined }

function reachedFrom(program: ts.Program, first: ReadonlySet<string>, folder: string): ReadonlySet<Item> {
  const checker = program.getTypeChecker() as Checker
  const kept = new Set<Item>()
  const waiting: Item[] = []
  const keep = (item: Item) => {
    if (kept.has(item) || !item.getSourceFile().fileName.startsWith(folder)) return
    kept.add(item)
    waiting.push(item)
  }
  const follow = (symbol: ts.Symbol | undefined): void => {
    for (const declaration of symbol?.declarations ?? []) {
      const item = itemOf(declaration)
      if (item !== null) keep(item)
    }
    if (symbol !== undefined && (symbol.flags & ts.SymbolFlags.Alias) !== 0) {
      follow(checker.getImmediateAliasedSymbol(symbol))
    }
  }
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node)) follow(checker.getSymbolAtLocation(node))
    ts.forEachChild(node, visit)
  }
  for (const file of first) for (const item of exportsOf(sourceOf(program, file))) keep(item)
  for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) {
    if (ts.isExportSpecifier(item)) follow(checker.getSymbolAtLocation(item.name))
    visit(item)
  }
  return kept
}

function sourceOf(program: ts.Program, file: string): ts.SourceFile {
  const source = program.getSourceFile(file)
  if (source === undefined) throw new Error(`${file} is not there.`)
  return source
}

function exportsOf(source: ts.SourceFile): readonly Item[] {
  return source.statements.flatMap((statement): readonly Item[] => {
    const names = namesOf(statement)
    if (names !== null) return ts.isExportDeclaration(statement) ? (names as ts.ExportSpecifier[]) : []
    const isExported = ts.canHaveModifiers(statement) && ts.getModifiers(statement)?.some(isExportWord)
    return isExported === true ? [statement] : []
  })
}

function isExportWord({ kind }: ts.Modifier): boolean {
  return kind === ts.SyntaxKind.ExportKeyword
}

/** The names that an import or export is a list of; null for what has to be kept or removed whole. */
function namesOf(statement: ts.Statement): readonly (ts.ImportSpecifier | ts.ExportSpecifier)[] | null {
  if (ts.isImportDeclaration(statement)) {
    const bindings = statement.importClause?.namedBindings
    return bindings !== undefined && ts.isNamedImports(bindings) ? [...bindings.elements] : null
  }
  if (!ts.isExportDeclaration(statement)) return null
  const clause = statement.exportClause
  return clause !== undefined && ts.isNamedExports(clause) ? [...clause.elements] : null
}

function itemOf(declaration: ts.Declaration): Item | null {
  let node: ts.Node = declaration
  while (!ts.isSourceFile(node.parent ?? node)) {
    if (ts.isImportSpecifier(node) || ts.isExportSpecifier(node)) return node
    node = node.parent
  }
  return ts.isSourceFile(node) ? null : (node as ts.Statement)
}

/** Empty when nothing is left but what makes a file a module. */
function prunedText(source: ts.SourceFile, kept: ReadonlySet<Item>): string {
  const parts = source.statements.map((statement) => {
    const names = namesOf(statement)
    if (names === null) return kept.has(statement) || isBareImport(statement) ? withoutTexts(statement) : ''
    const left = names.filter((name) => kept.has(name)).map((name) => name.getText())
    if (left.length === 0) return ''
    return left.length === names.length ? statement.getFullText() : withNames(statement, left)
  })
  const whole = parts.join('').trim()
  if (whole === '') return ''
  const marked = /^export /m.test(whole) ? whole : `${whole}\nexport {};`
  return `${marked.replaceAll(/^(?: {4})+/gm, (spaces) => '\t'.repeat(spaces.length / 4))}\n`
}

/** Tables of texts are declared with every text as a type, which no program compares: `string` is as good. */
function withoutTexts(statement: ts.Statement): string {
  if (!ts.isVariableStatement(statement)) return statement.getFullText()
  const texts: ts.Node[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isLiteralTypeNode(node) && ts.isStringLiteral(node.literal) && node.literal.text.includes(' '))
      texts.push(node)
    ts.forEachChild(node, visit)
  }
  visit(statement)
  const start = statement.getFullStart()
  let whole = statement.getFullText()
  for (const text of texts.toReversed()) {
    whole = `${whole.slice(0, text.getStart() - start)}string${whole.slice(text.getEnd() - start)}`
  }
  return whole
}

function withNames(statement: ts.Statement, names: readonly string[]): string {
  return `\n${statement.getText().replace(/\{[^}]*\}/, `{ ${names.join(', ')} }`)}`
}

function isBareImport(statement: ts.Statement): boolean {
  return ts.isImportDeclaration(statement) && statement.importClause === undefined
}
