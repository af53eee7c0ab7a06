import { userInfo } from 'node:os'
import { createInterface } from 'node:readline/promises'
import { isOnceError } from '../../ledger/core/errors.ts'
import { jsonText } from '../../ledger/core/json-text.ts'
import { createLedger } from '../../ledger/ledger.ts'
import { flag, type Given, optional, readArguments, text, type Values } from '../commands/argument.ts'
import type { Command } from '../commands/command.ts'
import { CommandRefused } from '../commands/refusal.ts'
import { type CommandCaller, type Commands, createCommands } from '../commands/run.ts'
import { commandOf } from '../commands/table.ts'
import { SWEEP_ROUNDS_MOST } from '../commands/upkeep.ts'
import { type Admin, createAdmin } from '../core/admin.ts'
import { findConfig, loadConfig } from './config.ts'
import { plain, type Shown } from './output.ts'
import { createProgress } from './progress.ts'
import { type OpenedStore, openExisting } from './store.ts'
import { shownOf } from './text/text.ts'
import { Usage } from './usage.ts'

export const commonArguments = {
  store: optional(
    text(
      'a file, postgres://…, mariadb://… or redis://…[?prefix=NAME]; else ONCEONLY_STORE, else `store` of the configuration',
    ),
  ),
  config: optional(text('a module that exports `store`; onceonly.config.ts when left out')),
  json: flag('JSON instead of text'),
  yes: flag('do not ask before something is changed'),
  by: optional(text('who acts, for the audit; your user name when left out')),
}

export type Common = Values<typeof commonArguments>

/** Pages that are read for one command; each looks at a bounded share of the records. */
const PAGES_MOST = 1_000

/** Runs a command of the table on the store, and prints what it answers. */
export async function runOperatorCommand(name: string, given: Given, commonGiven: Given): Promise<number> {
  const common = readArguments(commonArguments, commonGiven)
  return await withStore(common, async ({ commands, admin, caller }) => {
    const answer = await collected(name, commands, withRounds(name, given), caller)
    const command = commandOf(name) as Command
    if (command.kind === 'act' && given['preview'] !== true && admin.audit === null) {
      process.stderr.write(`The ${admin.store} store keeps no audit: note the action yourself.\n`)
    }
    const shown = shownOf(name, answer, { now: await admin.now(), isPreview: given['preview'] === true })
    return print(shown, common)
  })
}

interface Opened {
  readonly admin: Admin
  readonly commands: Commands
  readonly caller: CommandCaller
}

export async function withStore(common: Common, work: (opened: Opened) => Promise<number>): Promise<number> {
  const opened = await storeOf(common)
  const ledger = createLedger({ store: opened.store, background: false })
  const progress = createProgress('rounds:', null)
  try {
    const admin = createAdmin({ store: opened.store, ledger })
    const caller: CommandCaller = {
      role: 'operator',
      actor: { by: common.by ?? userName(), via: 'cli' },
      confirm: (question) => confirmed(common, plain(question)),
      progress: progress.step,
    }
    return await work({ admin, commands: createCommands({ admin }), caller })
  } catch (error) {
    if (isMissing(error)) return print({ data: null, text: plain(error.message), status: 1 }, common)
    throw isOnceError(error, 'store_unavailable') ? unreachable(error) : error
  } finally {
    progress.end()
    await ledger.stop()
    await opened.stop()
  }
}

export function print({ data, text: shown, status }: Shown, { json: isJson }: { readonly json: boolean }): number {
  process.stdout.write(`${isJson ? jsonText(data) : shown}\n`)
  return status ?? 0
}

function isMissing(error: unknown): error is Error {
  return isOnceError(error, 'not_found') || (error instanceof CommandRefused && error.why === 'not_found')
}

/** On the command line a sweep ends when nothing is left. */
function withRounds(name: string, given: Given): Given {
  return name === 'sweep' ? { rounds: SWEEP_ROUNDS_MOST, ...given } : given
}

interface Paged {
  readonly rows: readonly unknown[]
  readonly cursor: string | null
}

function isPaged(answer: unknown): answer is Paged {
  return typeof answer === 'object' && answer !== null && 'rows' in answer && 'cursor' in answer
}

/** A page may be empty although more rows follow, so pages are read until there are as many rows as were wanted. */
async function collected(name: string, commands: Commands, given: Given, caller: CommandCaller): Promise<unknown> {
  const first = await commands.runNamed(name, given, caller)
  if (!isPaged(first)) return first
  const wanted = Number(given['limit'] ?? commandOf(name)?.arguments['limit']?.schema['default'])
  let page = first
  const rows = [...page.rows]
  for (let pages = 1; page.cursor !== null && rows.length < wanted && pages < PAGES_MOST; pages++) {
    page = (await commands.runNamed(name, { ...given, cursor: page.cursor }, caller)) as Paged
    rows.push(...page.rows)
  }
  return { ...page, rows: rows.slice(0, wanted) }
}

/** A container may run as a user that the machine has no name for. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}

/** The database's own message says which of address, name and password it is. */
function unreachable(error: Error): Usage {
  const cause = error.cause instanceof Error ? error.cause : null
  const why = cause === null ? '' : ` (${cause.message || ('code' in cause ? String(cause.code) : cause.name)})`
  return new Usage(`The store cannot be reached${why}. Check the URL, and that it runs.`, { cause: error })
}

async function storeOf({ store: given, config }: Common): Promise<OpenedStore> {
  const url = given ?? (process.env['ONCEONLY_STORE'] || undefined)
  if (url !== undefined) return openExisting(url)
  const file = findConfig(config)
  if (file === null) {
    throw new Usage(
      'Which store? Give --store FILE or --store postgres://…, set ONCEONLY_STORE, or write onceonly.config.ts.',
    )
  }
  const { store: open } = await loadConfig(file)
  if (typeof open !== 'function') throw new Usage(`${file} exports no \`store\`.`)
  const store = await open()
  return { store, stop: () => store.stop() }
}

async function confirmed({ yes }: Common, question: string): Promise<void> {
  if (yes) return
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw new Usage(`${question} Say --yes to do it.`)
  // On the error output, so that a pipe gets only the answer of the command.
  const asking = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await asking.question(`${question} [y/N] `)
    if (!/^y(es)?$/i.test(answer.trim())) throw new Usage('Nothing was done.')
  } finally {
    asking.close()
  }
}
