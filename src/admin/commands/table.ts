import type { ActCommand, Command, ReadCommand } from './command.ts'
import { eventCommands } from './events.ts'
import { historyCommands } from './history.ts'
import { privacyCommands } from './privacy.ts'
import { queueCommands } from './queues.ts'
import { recordActions } from './record-actions.ts'
import { recordReads } from './records.ts'
import { runCommands } from './runs.ts'
import { scheduleCommands } from './schedules.ts'
import { streamCommands } from './streams.ts'
import { upkeepCommands } from './upkeep.ts'

/** Every command of operators, in the order of the help: the command line, the console and HTTP are made of it. */
export const commandTable = {
  ...recordReads,
  ...recordActions,
  ...eventCommands,
  ...runCommands,
  ...scheduleCommands,
  ...queueCommands,
  ...streamCommands,
  ...historyCommands,
  ...upkeepCommands,
  ...privacyCommands,
} satisfies Readonly<Record<string, Command>>

export type CommandTable = typeof commandTable
export type CommandName = keyof CommandTable

/** What a command answers. */
export type AnswerOf<Name extends CommandName> =
  CommandTable[Name] extends ReadCommand<infer _A, infer Answer>
    ? Answer
    : CommandTable[Name] extends ActCommand<infer _B, infer _S, infer Answer>
      ? Answer
      : never

export function commandOf(name: string): Command | undefined {
  return Object.hasOwn(commandTable, name) ? commandTable[name as CommandName] : undefined
}
