import type { Actor } from '../core/audit.ts'
import { type Arguments, flag, type Given, readArguments, spelled } from './argument.ts'
import type { ActCommand, Command, CommandParts, Context, Need, ReadCommand, Role } from './command.ts'
import { hint } from './hint.ts'
import { badArgument, CommandRefused } from './refusal.ts'
import { type AnswerOf, type CommandName, commandOf, commandTable } from './table.ts'

/** The operator who runs a command, and how they confirm it. */
export interface CommandCaller {
  readonly role: Role
  readonly actor: Actor
  /** Asked before something is changed; rejects to leave everything as it is. */
  confirm?(question: string): Promise<void>
  /** Called after each round of long work. */
  progress?(share?: number): void
  /** Called before an action is done, not before a preview. */
  onAction?(name: string): void
}

export interface Commands {
  /** Checks role and arguments, then reads, previews or acts; an action is written to the audit. */
  run<Name extends CommandName>(name: Name, given: Given, caller: CommandCaller): Promise<AnswerOf<Name>>
  /** The same for a name that came from outside. */
  runNamed(name: string, given: Given, caller: CommandCaller): Promise<unknown>
  has(name: CommandName): boolean
}

const PREVIEW = { preview: spelled(flag('only show what would be done'), { 'dry-run': { value: 'true' } }) }

/** The arguments of a command, with `preview` where it can show what it would do. */
export function argumentsOf(command: Command): Arguments {
  return command.kind === 'act' && command.find !== undefined ? { ...command.arguments, ...PREVIEW } : command.arguments
}

/**
 * The commands of operators, as the console and the command line run them: with roles, previews and an audit. Those
 * whose part is left out are not available.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createAdmin } from 'onceonly/admin'
 * import { createCommands } from 'onceonly/admin/commands'
 * import { sqliteStore } from 'onceonly/sqlite'
 *
 * const store = sqliteStore('once.db')
 * const admin = createAdmin({ store, ledger: createLedger({ store, background: false }) })
 * const commands = createCommands({ admin })
 * const actor = { by: 'mira', via: 'script' }
 * console.log(await commands.run('status', {}, { role: 'viewer', actor }))
 * ```
 */
export function createCommands(parts: CommandParts): Commands {
  const shared = new Map<Command, { readonly until: number; readonly answer: Promise<unknown> }>()

  async function answer(command: ReadCommand, context: Context, values: Given): Promise<unknown> {
    if (command.sharedMs === undefined) return await command.read(context, values)
    const last = shared.get(command)
    if (last !== undefined && last.until >= performance.now()) return await last.answer
    const asked = command.read(context, values)
    shared.set(command, { until: performance.now() + command.sharedMs, answer: asked })
    asked.catch(() => shared.delete(command))
    return await asked
  }

  async function look(command: ReadCommand, context: Context, values: Given, role: Role): Promise<unknown> {
    const found = await answer(command, context, values)
    return role === 'viewer' && command.forViewer !== undefined ? command.forViewer(found) : found
  }

  async function change(
    name: string,
    command: ActCommand,
    context: Context,
    { preview, ...values }: Given,
    caller: CommandCaller,
  ): Promise<unknown> {
    const subject = await command.find?.(context, values)
    if (preview === true) return caller.role === 'viewer' ? command.forViewer?.(subject) : subject
    const question = command.question(values, subject)
    if (question !== null) await caller.confirm?.(question)
    caller.onAction?.(name)
    return await parts.admin.act(caller.actor, name, command.target(values, subject), () =>
      command.act(context, values, subject),
    )
  }

  async function runNamed(name: string, given: Given, caller: CommandCaller): Promise<unknown> {
    const command = commandOf(name)
    if (command === undefined) throw unknownCommand(name)
    if (caller.role === 'viewer' && command.role === 'operator' && !isPreview(command, given)) {
      throw new CommandRefused('forbidden', 'This command needs the operator role.')
    }
    checkNeeds(command, parts)
    const values = readArguments(argumentsOf(command), given)
    const context = { ...parts, actor: caller.actor, progress: (share?: number) => caller.progress?.(share) }
    return command.kind === 'read'
      ? await look(command, context, values, caller.role)
      : await change(name, command, context, values, caller)
  }

  return {
    run: (name, given, caller) => runNamed(name, given, caller) as Promise<AnswerOf<typeof name>>,
    runNamed,
    has: (name) => missing(commandTable[name], parts) === undefined,
  }
}

/** A preview changes nothing, so a viewer may have it. */
function isPreview(command: Command, given: Given): boolean {
  return command.kind === 'act' && command.forViewer !== undefined && given['preview'] === true
}

function unknownCommand(name: string) {
  const names = Object.keys(commandTable)
  return badArgument('command', `\`${name}\` does not exist.${hint(name, names, (near) => `\`${near}\``)}`)
}

const needed: Readonly<Record<Need, (parts: CommandParts) => unknown>> = {
  events: ({ admin }) => admin.events,
  sagas: ({ admin }) => admin.sagas,
  runs: ({ admin }) => admin.runs,
  streams: ({ admin }) => admin.streams,
  audit: ({ admin }) => admin.audit,
  guards: ({ guards = [] }) => guards[0],
  routes: ({ routes }) => routes,
  rooms: ({ rooms }) => rooms,
  replay: ({ runs }) => runs,
}

/** What a store without SQL has not; everything else is not configured. */
const names: Readonly<Partial<Record<Need, string>>> = {
  events: 'no outbox and no inbox',
  sagas: 'no sagas',
  runs: 'no runs',
  streams: 'no streams',
  audit: 'no audit',
}

function missing(command: Command, parts: CommandParts): Need | undefined {
  return command.needs?.find((need) => (needed[need](parts) ?? null) === null)
}

function checkNeeds(command: Command, parts: CommandParts): void {
  const need = missing(command, parts)
  if (need === undefined) return
  const name = names[need]
  throw new CommandRefused(
    'not_available',
    name === undefined
      ? `No ${need} are configured here.`
      : `The ${parts.admin.store} store has ${name}: they need SQL.`,
  )
}
