import { userInfo } from 'node:os'
import { createInterface } from 'node:readline/promises'
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { isOnceError } from '../../ledger/core/errors.ts'
import type { Identity } from '../../ledger/core/identity.ts'
import { DAY, HOUR, limits, MINUTE, SECOND } from '../../ledger/core/limits.ts'
import { createLedger } from '../../ledger/ledger.ts'
import type { Store } from '../../ledger/store/port.ts'
import { type Admin, createAdmin } from '../core/admin.ts'
import type { Actor } from '../core/audit.ts'
import { loadConfig, usualConfig } from './config.ts'
import { json, type Shown } from './output.ts'
import type { Run } from './run.ts'
import { type OpenedStore, openExisting } from './store.ts'
import { Usage } from './usage.ts'

type Options = NonNullable<ParseArgsConfig['options']>
export type Values = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>

/** One command on a store. */
export interface OperatorCommand {
  /** The first line of its help. */
  readonly usage: string
  /** Everything else of its help. */
  readonly about: string
  readonly options?: Options
  /** Options of type string whose value may be left out: then it is empty. */
  readonly optionalValues?: readonly string[]
  /** Rows that are shown when nobody says how many. */
  readonly limit?: number
  run(asked: Asked): Promise<Shown>
}

/** What a command is given: the operator's room, and what was typed. */
export interface Asked {
  readonly admin: Admin
  readonly store: Store
  readonly values: Values
  readonly positionals: readonly string[]
  readonly limit: number
  /** By the store's clock; undefined when nobody said `--since`. */
  readonly since: number | undefined
  readonly actor: Actor
  text(name: string): string | undefined
  /** Asks, unless `--yes` was said; a program that cannot be asked has to say it. */
  confirm(question: string): Promise<void>
}

const common: Options = {
  store: { type: 'string' },
  config: { type: 'string' },
  json: { type: 'boolean' },
  limit: { type: 'string' },
  since: { type: 'string' },
  yes: { type: 'boolean' },
  by: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
}

const COMMON_HELP = `
  --store URL    a file, postgres://… or redis://…[?prefix=NAME]; else ONCEONLY_STORE, else \`store\` of the configuration
  --config FILE  a module that exports \`store\`; onceonly.config.ts, when left out
  --limit N      how many rows at the most          --since 2h   only since then: a number and s, m, h or d
  --json         JSON for programs instead of text  --yes        do not ask before something is changed
  --by NAME      who acts, for the audit; your user name, when left out

Exit status: 0 done; 1 something needs a look, or nothing was found; 2 it could not be done.
`

const ROWS = 100

export function operatorCommand(command: OperatorCommand): Run {
  return async (args) => {
    const given = withEmptyValues(args, command.optionalValues ?? [])
    const { values, positionals } = parse(given, { ...common, ...command.options })
    if (values['help'] === true) {
      process.stdout.write(`onceonly ${command.usage}\n\n${command.about.trim()}\n${COMMON_HELP}`)
      return 0
    }
    const limit = limitOf(values['limit'], command.limit ?? ROWS)
    const sinceMs = sinceOf(values['since'])
    const opened = await storeOf(values)
    const ledger = createLedger({ store: opened.store, background: false })
    try {
      const admin = createAdmin({ store: opened.store, ledger })
      const shown = await command.run({
        admin,
        store: opened.store,
        values,
        positionals,
        limit,
        since: sinceMs === null ? undefined : (await admin.now()) - sinceMs,
        actor: { by: textOf(values, 'by') ?? whoRuns(), via: 'cli' },
        text: (name) => textOf(values, name),
        confirm: (question) => confirmed(values, question),
      })
      process.stdout.write(`${values['json'] === true ? json(shown.data) : shown.text}\n`)
      return shown.status ?? 0
    } catch (error) {
      throw isOnceError(error, 'store_unavailable') ? away(error) : error
    } finally {
      await ledger.stop()
      await opened.stop()
    }
  }
}

/** A container may run as a user that the machine has no name for. */
function whoRuns(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}

/** The database's own words say which of address, name and password it is. */
function away(error: Error): Usage {
  const cause = error.cause instanceof Error ? error.cause : null
  const why = cause === null ? '' : ` (${cause.message || ('code' in cause ? String(cause.code) : cause.name)})`
  return new Usage(`The store cannot be reached${why}. Check the URL, and that it runs.`, { cause: error })
}

/** `--failed --yes` becomes `--failed= --yes`; a value that begins with one dash, such as `-5`, is joined to its option. */
function withEmptyValues(args: readonly string[], names: readonly string[]): readonly string[] {
  const given: string[] = []
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? ''
    if (arg === '--') return [...given, ...args.slice(at)]
    if (!names.some((name) => arg === `--${name}`)) {
      given.push(arg)
      continue
    }
    const next = args[at + 1]
    const isValue = next !== undefined && !/^-(-|[a-z]$)/.test(next)
    given.push(isValue ? `${arg}=${next}` : `${arg}=`)
    if (isValue) at++
  }
  return given
}

function parse(args: readonly string[], options: Options): { values: Values; positionals: readonly string[] } {
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options })
  } catch (error) {
    throw new Usage(error instanceof Error ? error.message : String(error))
  }
}

async function storeOf(values: Values): Promise<OpenedStore> {
  const url = textOf(values, 'store') ?? (process.env['ONCEONLY_STORE'] || undefined)
  if (url !== undefined) return openExisting(url)
  const file = usualConfig(textOf(values, 'config'))
  if (file === null) {
    throw new Usage(
      'Which store? Say --store FILE or --store postgres://…, set ONCEONLY_STORE, or write onceonly.config.ts.',
    )
  }
  const config = await loadConfig(file)
  if (typeof config.store !== 'function') throw new Usage(`${file} exports no \`store\`.`)
  const store = await config.store()
  return { store, stop: () => store.stop() }
}

async function confirmed(values: Values, question: string): Promise<void> {
  if (values['yes'] === true) return
  if (!process.stdin.isTTY || !process.stderr.isTTY) throw new Usage(`${question} Say --yes to do it.`)
  // Beside the output, so that a pipe gets the answer of the command only.
  const asking = createInterface({ input: process.stdin, output: process.stderr })
  try {
    const answer = await asking.question(`${question} [y/N] `)
    if (!/^y(es)?$/i.test(answer.trim())) throw new Usage('Nothing was done.')
  } finally {
    asking.close()
  }
}

function textOf(values: Values, name: string): string | undefined {
  const value = values[name]
  return typeof value === 'string' ? value : undefined
}

function limitOf(given: Values[string], usual: number): number {
  if (given === undefined) return usual
  const limit = Number(given)
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= limits.pageRows) return limit
  throw new Usage(`--limit ${String(given)} is no whole number from 1 to ${limits.pageRows}.`)
}

const units: Readonly<Record<string, number>> = { s: SECOND, m: MINUTE, h: HOUR, d: DAY }

function sinceOf(given: Values[string]): number | null {
  if (given === undefined) return null
  const [, number, unit = ''] = /^(\d{1,6})([smhd])$/.exec(String(given)) ?? []
  const unitMs = units[unit]
  if (number === undefined || unitMs === undefined)
    throw new Usage(`--since ${String(given)} is no time like 7d or 12h.`)
  return Number(number) * unitMs
}

/** `TENANT CALLER OPERATION KEY`, or `--id RECORD_ID`. */
export async function identityOf({ admin, positionals, text }: Asked): Promise<Identity> {
  const id = text('id')
  if (id !== undefined) {
    const found = await admin.inspect({ id })
    if (found === null) throw new Usage(`There is no record ${id}.`)
    return found.record.identity
  }
  const [tenant, caller, operation, key] = positionals
  if (tenant === undefined || caller === undefined || operation === undefined || key === undefined) {
    throw new Usage('Name it by TENANT CALLER OPERATION KEY, or by --id RECORD_ID.')
  }
  const batch = text('batch')
  return { tenant, caller, operation, key, ...(batch === undefined ? {} : { batch }) }
}

export const named: Options = { id: { type: 'string' }, batch: { type: 'string' } }
