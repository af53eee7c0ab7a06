import { globSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import ts from 'typescript'

/** The declarations of many files; nothing that is imported from another package is in it. */
const MERGED = 'types.d.ts'

/** What a name of a module is in the end: the file that declares it, and its name there. */
interface Target {
  readonly file: string
  readonly name: string
}

interface Module {
  readonly source: ts.SourceFile
  /** Names that it passes on from another file. */
  readonly passed: ReadonlyMap<string, Target>
  readonly declared: ReadonlySet<string>
  /** Whether it imports nothing from outside, in forms that can be moved. */
  readonly movable: boolean
}

interface Merge {
  readonly folder: string
  readonly modules: ReadonlyMap<string, Module>
  readonly merged: ReadonlySet<string>
}

/**
 * Puts the declarations of hundreds of files into one: in an archive each file costs a header, and in the declarations
 * each name is repeated by every file that imports it. Files of entries stay, and so do those that need a framework or
 * Node, because who imports one entry must not need the types of another one.
 */
export function mergeDeclarations(folder: string, entries: readonly string[]): void {
  const files = globSync('**/*.d.ts', { cwd: folder }).map((name) => join(folder, name))
  const program = ts.createProgram(files.toSorted(), {
    module: ts.ModuleKind.NodeNext,
    lib: ['lib.es2022.d.ts', 'lib.esnext.disposable.d.ts', 'lib.dom.d.ts'],
    noEmit: true,
    types: [],
  })
  // Binds the files, so that each node knows its parent.
  program.getTypeChecker()
  const modules = new Map(
    files.toSorted().map((file) => [file, moduleOf(program.getSourceFile(file) ?? missing(file))]),
  )
  const fixed = new Set(entries)
  const global = globalNames(program)
  const bound = new Map<string, string>()
  const merged = new Set<string>()
  for (const [file, module] of modules) {
    if (fixed.has(file) || !module.movable || [...module.declared].some((name) => global.has(name))) continue
    const names = bindingsOf(file, module, modules)
    if ([...names].some(([name, target]) => (bound.get(name) ?? target) !== target)) continue
    if (program.getSemanticDiagnostics(module.source).length > 0) continue
    for (const [name, target] of names) bound.set(name, target)
    merged.add(file)
  }
  write({ folder, modules, merged }, publicNames(entries, modules))
}

function write(merge: Merge, known: ReadonlySet<string>): void {
  const { folder, modules, merged } = merge
  const into = join(folder, MERGED)
  const lists = new Map<string, Set<string>>()
  const parts: string[] = []
  for (const file of merged) {
    const { source } = modules.get(file) ?? missing(file)
    parts.push(...partsOf({ merge, source, into, lists, known }))
  }
  for (const [file, { source }] of modules) {
    if (merged.has(file)) continue
    const ownLists = new Map<string, Set<string>>()
    const own = partsOf({ merge, source, into: file, lists: ownLists, known })
    writeFileSync(file, textOf(ownLists, own))
  }
  for (const file of merged) rmSync(file)
  writeFileSync(into, textOf(lists, parts))
}

function textOf(lists: ReadonlyMap<string, ReadonlySet<string>>, parts: readonly string[]): string {
  const named = [...lists].map(([frame, names]) => frame.replace('*', [...names].join(', ')))
  const text = [...named, ...parts].join('\n')
  return /^export /m.test(text) ? `${text}\n` : `${text}\nexport {};\n`
}

/** The statements of a file as they stand in `into`; what is imported or passed on by name is collected in `lists`. */
function partsOf(work: {
  readonly merge: Merge
  readonly source: ts.SourceFile
  readonly into: string
  readonly lists: Map<string, Set<string>>
  readonly known: ReadonlySet<string>
}): readonly string[] {
  const { merge, source, into, lists, known } = work
  const add = (frame: string, name: string) => lists.set(frame, (lists.get(frame) ?? new Set<string>()).add(name))
  const parts: string[] = []
  for (const statement of source.statements) {
    const named = namedOf(statement)
    if (named === null) {
      if (!isEmptyExport(statement)) parts.push(moved(statement, { merge, into, known }))
      continue
    }
    for (const { from, to, isTypeOnly } of named.names) {
      const target = resolve(targetOf(source.fileName, named.from, from), merge.modules)
      const place = merge.merged.has(target.file) ? join(merge.folder, MERGED) : target.file
      if (place === into && target.name === to) continue
      // The same name may come as a type and as a value, and one import must do.
      const kind = `${named.kind}${isTypeOnly || (named.kind === 'import' && source.fileName !== into) ? ' type' : ''}`
      add(`${kind} { * } from '${specifierOf(into, place)}';`, target.name === to ? to : `${target.name} as ${to}`)
    }
  }
  return parts
}

/** With the comment that belongs to it, if an editor can show it, and with the types that it imports in place. */
function moved(
  statement: ts.Statement,
  { merge, into, known }: { readonly merge: Merge; readonly into: string; readonly known: ReadonlySet<string> },
): string {
  const source = statement.getSourceFile()
  const start = statement.getStart()
  const edits: { readonly start: number; readonly end: number; readonly text: string }[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isImportTypeNode(node)) {
      const { file, name } = resolve(targetOfImport(node), merge.modules)
      const place = merge.merged.has(file) ? join(merge.folder, MERGED) : file
      const text = place === into ? name : `import("${specifierOf(into, place)}").${name}`
      edits.push({ start: node.getStart(), end: node.qualifier?.getEnd() ?? node.getEnd(), text })
    }
    ts.forEachChild(node, visit)
  }
  visit(statement)
  let text = source.text.slice(start, statement.getEnd())
  for (const edit of edits.toReversed()) {
    text = text.slice(0, edit.start - start) + edit.text + text.slice(edit.end - start)
  }
  const comment = ts.getLeadingCommentRanges(source.text, statement.getFullStart())?.at(-1)
  const shown = namesDeclared(statement).some((name) => known.has(`${source.fileName}#${name}`))
  return comment === undefined || !shown ? text : `${source.text.slice(comment.pos, comment.end)}\n${text}`
}

function moduleOf(source: ts.SourceFile): Module {
  const passed = new Map<string, Target>()
  const declared = new Set<string>()
  let movable = !hasForeignForms(source)
  for (const statement of source.statements) {
    const named = namedOf(statement)
    for (const name of namesDeclared(statement)) declared.add(name)
    if (named?.kind === 'export') {
      for (const { from, to } of named.names) passed.set(to, targetOf(source.fileName, named.from, from))
    }
    if (named === null && isImportOrExport(statement) && !isEmptyExport(statement)) movable = false
  }
  return { source, passed, declared, movable }
}

function isImportOrExport(statement: ts.Statement): boolean {
  return ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement) || ts.isExportAssignment(statement)
}

function isEmptyExport(statement: ts.Statement): boolean {
  if (!ts.isExportDeclaration(statement) || statement.moduleSpecifier !== undefined) return false
  return statement.exportClause !== undefined && statement.exportClause.getText().replaceAll(/\s/g, '') === '{}'
}

/** Imported in place from another package, or in a form other than `import('./file.ts').Name`. */
function hasForeignForms(node: ts.Node): boolean {
  if (ts.isImportTypeNode(node)) {
    const { argument, qualifier } = node
    const path = ts.isLiteralTypeNode(argument) && ts.isStringLiteral(argument.literal) ? argument.literal.text : ''
    if (node.isTypeOf || !path.startsWith('.') || qualifier === undefined || !ts.isIdentifier(qualifier)) return true
  }
  return ts.forEachChild(node, (child) => hasForeignForms(child) || undefined) === true
}

interface Named {
  readonly kind: 'import' | 'export'
  readonly from: string
  readonly names: readonly { readonly from: string; readonly to: string; readonly isTypeOnly: boolean }[]
}

/** An import or export by name from another file of ours; null for anything else. */
function namedOf(statement: ts.Statement): Named | null {
  if (!ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement)) return null
  const { moduleSpecifier } = statement
  if (moduleSpecifier === undefined || !ts.isStringLiteral(moduleSpecifier)) return null
  const isImport = ts.isImportDeclaration(statement)
  const clause = isImport ? statement.importClause?.namedBindings : statement.exportClause
  if (!moduleSpecifier.text.startsWith('.') || clause === undefined) return null
  if (!ts.isNamedImports(clause) && !ts.isNamedExports(clause)) return null
  const isTypeOnly = isImport ? statement.importClause?.isTypeOnly === true : statement.isTypeOnly
  const names = [...clause.elements].map((element) => ({
    from: (element.propertyName ?? element.name).text,
    to: element.name.text,
    isTypeOnly: isTypeOnly || element.isTypeOnly,
  }))
  return { kind: isImport ? 'import' : 'export', from: moduleSpecifier.text, names }
}

function namesDeclared(statement: ts.Statement): readonly string[] {
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.map(({ name }) => name.getText())
  }
  const isNamed =
    ts.isInterfaceDeclaration(statement) ||
    ts.isTypeAliasDeclaration(statement) ||
    ts.isClassDeclaration(statement) ||
    ts.isFunctionDeclaration(statement) ||
    ts.isEnumDeclaration(statement) ||
    ts.isModuleDeclaration(statement)
  return isNamed && statement.name !== undefined ? [statement.name.text] : []
}

/** Every name of a file at its top, with what it stands for. */
function bindingsOf(
  file: string,
  { source, passed, declared }: Module,
  modules: ReadonlyMap<string, Module>,
): ReadonlyMap<string, string> {
  const names = new Map([...declared].map((name) => [name, `${file}#${name}`]))
  const bind = (name: string, target: Target) => {
    const final = resolve(target, modules)
    names.set(name, `${final.file}#${final.name}`)
  }
  for (const [name, target] of passed) bind(name, target)
  for (const statement of source.statements) {
    const named = namedOf(statement)
    for (const { from, to } of named?.names ?? []) bind(to, targetOf(file, named?.from ?? '', from))
  }
  return names
}

function targetOf(file: string, specifier: string, name: string): Target {
  return { file: join(dirname(file), specifier).replace(/\.ts$/, '.d.ts'), name }
}

function targetOfImport(node: ts.ImportTypeNode): Target {
  if (hasForeignForms(node)) throw new Error(`${node.getText()} cannot be followed.`)
  const path =
    ts.isLiteralTypeNode(node.argument) && ts.isStringLiteral(node.argument.literal) ? node.argument.literal.text : ''
  return targetOf(node.getSourceFile().fileName, path, node.qualifier?.getText() ?? '')
}

/** Follows a name through the files that pass it on. */
function resolve(target: Target, modules: ReadonlyMap<string, Module>): Target {
  const module = modules.get(target.file)
  if (module === undefined) return missing(target.file)
  const next = module.passed.get(target.name)
  return next === undefined ? target : resolve(next, modules)
}

/** The names that an entry exports, as an editor shows them. */
function publicNames(entries: readonly string[], modules: ReadonlyMap<string, Module>): ReadonlySet<string> {
  const known = new Set<string>()
  for (const file of entries) {
    const { passed, declared } = modules.get(file) ?? missing(file)
    for (const name of declared) known.add(`${file}#${name}`)
    for (const target of passed.values()) {
      const final = resolve(target, modules)
      known.add(`${final.file}#${final.name}`)
    }
  }
  return known
}

/** A declaration of the same name would take the place of what the others mean by it. */
function globalNames(program: ts.Program): ReadonlySet<string> {
  const libraries = program.getSourceFiles().filter((source) => program.isSourceFileDefaultLibrary(source))
  return new Set(libraries.flatMap(({ statements }) => [...statements].flatMap(namesDeclared)))
}

function specifierOf(from: string, to: string): string {
  const path = relative(dirname(from), to).replace(/\.d\.ts$/, '.ts')
  return path.startsWith('.') ? path : `./${path}`
}

function missing(file: string): never {
  throw new Error(`${file} is not there.`)
}
