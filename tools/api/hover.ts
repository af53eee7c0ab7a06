import ts from 'typescript'
import { examplesOf } from '../../test/support/examples.ts'
import type { Entry, Surface } from './entries.ts'

const options = /(?:Options|Definition)$/

/** Names that begin like this make something that a program keeps. */
const makers = /^(?:create|define|open)[A-Z]|Store$/

/** What an editor does not show: functions without a sentence or example, options without a default. */
export function missingHover(surface: Surface): readonly string[] {
  const problems = new Set<string>()
  for (const entry of surface.entries) {
    for (const problem of missingIn(entry, surface)) problems.add(`${entry.name}: ${problem}`)
  }
  return [...problems]
}

function* missingIn(entry: Entry, { checker }: Surface): Generator<string> {
  if (!entry.exports.some(({ symbol }) => hasTag(symbol, 'example'))) yield 'nothing of it has an @example'
  for (const { name, symbol } of entry.exports) {
    for (const each of [symbol, ...(symbol.members?.values() ?? [])]) {
      if (hasOpenExample(each))
        yield `\`${each.name}\` has an @example that is not one \`\`\`ts block, so no test compiles it`
    }
    if (symbol.flags & (ts.SymbolFlags.Function | ts.SymbolFlags.Class | ts.SymbolFlags.Variable)) {
      if (sentenceOf(symbol, checker) === '') yield `\`${name}\` has no sentence`
      const isMaker = makers.test(name) || isNamedAsEntry(name, entry)
      if (isMaker && !hasTag(symbol, 'example')) yield `\`${name}\` has no @example`
    }
    if (!options.test(name)) continue
    const members = propertiesOf(checker.getDeclaredTypeOfSymbol(symbol)).filter(isOurs)
    for (const [option, cases] of Map.groupBy(members, (each) => each.name)) {
      if (cases.every((each) => sentenceOf(each, checker) === '')) yield `\`${name}.${option}\` has no sentence`
      const isOptional = cases.every(({ flags }) => flags & ts.SymbolFlags.Optional)
      if (isOptional && !cases.some((each) => hasTag(each, 'default'))) yield `\`${name}.${option}\` has no @default`
    }
  }
}

/** `mikroOrm` of `onceonly/mikro-orm`. */
function isNamedAsEntry(name: string, entry: Entry): boolean {
  return entry.name === `onceonly/${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

/** The tests compile what `examplesOf` finds in a published declaration: a tag that is one block. */
function hasOpenExample(symbol: ts.Symbol): boolean {
  const comments = (symbol.declarations ?? []).flatMap((each) => ts.getJSDocCommentsAndTags(each).filter(ts.isJSDoc))
  return comments.some((comment) => {
    const text = comment.getText()
    const [tags, fences] = [/^[ \t]*(?:\/\*)?\*+[ \t]*@example\b/gm, /```/g].map(
      (pattern) => [...text.matchAll(pattern)].length,
    )
    const examples = examplesOf(text).length
    return tags !== examples || (examples > 0 && fences !== 2 * examples)
  })
}

/** Of a union the members of all its cases. */
function propertiesOf(type: ts.Type): readonly ts.Symbol[] {
  return type.isUnion() ? type.types.flatMap((each) => each.getProperties()) : type.getProperties()
}

function sentenceOf(symbol: ts.Symbol, checker: ts.TypeChecker): string {
  return ts.displayPartsToString(symbol.getDocumentationComment(checker)).trim()
}

function hasTag(symbol: ts.Symbol, tag: string): boolean {
  return symbol.getJsDocTags().some(({ name }) => name === tag)
}

/** Members of a framework's own types are the framework's to document. */
function isOurs(symbol: ts.Symbol): boolean {
  return symbol.declarations?.some((each) => !each.getSourceFile().fileName.includes('/node_modules/')) ?? false
}
