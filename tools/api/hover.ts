import ts from 'typescript'
import type { Entry, Surface } from './entries.ts'

/** The entries that most programs import: what their editor shows has to be complete. */
const checked: ReadonlySet<string> = new Set([
  'onceonly',
  'onceonly/errors',
  'onceonly/memory',
  'onceonly/sqlite',
  'onceonly/postgres',
  'onceonly/mariadb',
  'onceonly/redis',
  'onceonly/kysely',
  'onceonly/drizzle',
  'onceonly/prisma',
  'onceonly/typeorm',
  'onceonly/knex',
  'onceonly/mikro-orm',
  'onceonly/sequelize',
  'onceonly/postgres-js',
  'onceonly/http',
  'onceonly/express',
  'onceonly/fastify',
  'onceonly/hono',
  'onceonly/koa',
  'onceonly/fetch',
  'onceonly/node',
  'onceonly/nest',
  'onceonly/lambda',
  'onceonly/outbox',
  'onceonly/inbox',
  'onceonly/saga',
  'onceonly/run',
  'onceonly/stream',
  'onceonly/client',
])

const options = /(?:Options|Definition)$/

/** Names that begin like this make something that a program keeps. */
const makers = /^(?:create|define|open)[A-Z]|Store$/

/** What an editor does not show of the main entries: functions without a sentence or example, options without a default. */
export function missingHover(surface: Surface): readonly string[] {
  const problems = new Set<string>()
  for (const entry of surface.entries.filter(({ name }) => checked.has(name))) {
    for (const problem of missingIn(entry, surface)) problems.add(`${entry.name}: ${problem}`)
  }
  return [...problems]
}

function* missingIn(entry: Entry, { checker }: Surface): Generator<string> {
  for (const { name, symbol } of entry.exports) {
    if (symbol.flags & (ts.SymbolFlags.Function | ts.SymbolFlags.Class | ts.SymbolFlags.Variable)) {
      if (sentenceOf(symbol, checker) === '') yield `\`${name}\` has no sentence`
      const isMaker = makers.test(name) || isNamedAsEntry(name, entry)
      if (isMaker && !hasTag(symbol, 'example')) yield `\`${name}\` has no @example`
      if (hasOpenExample(symbol)) yield `\`${name}\` has an @example that is no \`\`\`ts block, so nothing compiles it`
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

/** The tests compile blocks alone. */
function hasOpenExample(symbol: ts.Symbol): boolean {
  const examples = symbol.getJsDocTags().filter(({ name }) => name === 'example')
  return examples.some(({ text }) => !ts.displayPartsToString(text).trim().startsWith('```ts'))
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
