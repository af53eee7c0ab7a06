import { readFile } from 'node:fs/promises'
import { isOnceError } from '../../ledger/core/errors.ts'
import { type Arguments, flag, type Given, readArguments } from '../commands/argument.ts'
import type { Command } from '../commands/command.ts'
import { hint } from '../commands/hint.ts'
import { BadArguments, CommandRefused } from '../commands/refusal.ts'
import { argumentsOf } from '../commands/run.ts'
import { commandTable } from '../commands/table.ts'
import { helpOf, listOf, usageOf } from './help.ts'
import { commonArguments, runOperatorCommand } from './operator.ts'
import { faultText, parseWords } from './parse.ts'
import { type Program, programs } from './programs.ts'
import { brief, Usage } from './usage.ts'

/** Commands that need a part of a running server are for its console. */
const serverNeeds: readonly string[] = ['guards', 'rooms', 'replay']

interface Entry {
  readonly summary: string
  readonly details?: string
  readonly arguments: Arguments
  readonly words: readonly string[]
  readonly common: Arguments
  /** Null for a command of the table. */
  readonly program: Program | null
}

const HELP = { help: flag('show this help') }

/** Every command of the command line by its name, with a dot where it has a space: the table's, then programs. */
const entries: ReadonlyMap<string, Entry> = new Map([
  ...Object.entries(commandTable as Readonly<Record<string, Command>>)
    .filter(([, { needs = [] }]) => !needs.some((need) => serverNeeds.includes(need)))
    .map(([name, each]) => [name, entryOf({ ...each, arguments: argumentsOf(each) }, commonArguments, null)] as const),
  ...Object.entries(programs).map(([name, each]) => [name, entryOf(each, each.common ?? {}, each)] as const),
])

function entryOf(of: Command | Program, common: Arguments, program: Program | null): Entry {
  return { ...of, words: of.words ?? [], common: { ...common, ...HELP }, program }
}

export const names: readonly string[] = [...entries.keys()]

/** The exit status: 0 when all is well, 1 when something was found, 2 when it could not be done. */
export async function command(args: readonly string[]): Promise<number> {
  const [first] = args
  if (first === undefined || first === 'help' || first === '--help' || first === '-h') {
    process.stdout.write(help())
    return first === undefined ? 2 : 0
  }
  if (first === 'version' || first === '--version' || first === '-v') {
    process.stdout.write(`${await version()}\n`)
    return 0
  }
  let words: readonly string[] = []
  try {
    const [name, entry, typed] = entryAt(args)
    words = entry.words
    const given = parseWords(typed, { ...entry.arguments, ...entry.common }, words)
    if (given['help'] === true) {
      process.stdout.write(helpOf(name, entry, entry.common))
      return 0
    }
    const { help: _help, ...common } = entry.common
    if (entry.program === null)
      return await runOperatorCommand(name, split(given, entry.arguments), split(given, common))
    const run = await entry.program.load()
    const listing = new Map([...entries].map(([each, of]) => [each, { ...of.arguments, ...of.common }]))
    return await run(readArguments({ ...entry.arguments, ...common }, given) as never, listing)
  } catch (error) {
    const message = messageOf(error, words)
    console.error(message === null ? error : `onceonly: ${message}`)
    return 2
  }
}

function split(given: Given, of: Arguments): Given {
  return Object.fromEntries(Object.entries(given).filter(([name]) => Object.hasOwn(of, name)))
}

/** The message of an error that the operator can correct; null for all others, which are shown with their stack. */
function messageOf(error: unknown, words: readonly string[]): string | null {
  if (error instanceof BadArguments) return faultText(error, words)
  return error instanceof Usage || error instanceof CommandRefused || isOnceError(error) ? error.message : null
}

/** The longest name that the line begins with, and what follows it. */
function entryAt(args: readonly string[]): readonly [name: string, entry: Entry, rest: readonly string[]] {
  const [first = '', second = ''] = args
  const isGroup = names.some((name) => name.startsWith(`${first}.`))
  for (const length of [2, 1]) {
    const name = args.slice(0, length).join('.')
    const entry = args.length < length ? undefined : entries.get(name)
    // A word behind a command that takes none is a mistyped second part of a name.
    const isMistyped = length === 1 && isGroup && entry?.words.length === 0 && /^[a-z]/.test(second)
    if (entry !== undefined && !isMistyped) return [name, entry, args.slice(length)]
  }
  const typed = isGroup ? `${first}.${second}` : first
  const near = hint(typed, names, (name) => `\`${name.replace('.', ' ')}\``)
  throw new Usage(
    `There is no command \`${brief(typed.replace('.', ' ').trim())}\`.${near} \`onceonly --help\` lists them.`,
  )
}

/** Of the package that this file is in, built or not. */
async function version(): Promise<string> {
  const file = await readFile(new URL('../../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(file) as { readonly version: string }).version
}

function help(): string {
  const rows = [...entries].map(([name, entry]) => [usageOf(name, entry), entry.summary] as const)
  return `onceonly COMMAND

${listOf(rows)}

\`onceonly COMMAND --help\` shows the options, \`onceonly --version\` the version.
`
}
