/** `onceonly/admin/commands`: the table of commands behind the command line, the console and the HTTP API. */

export { fromTexts, type Schema, schemaOf } from './argument.ts'
export type { Command, CommandParts, Role, StepResolution, StreamRooms } from './command.ts'
export { BadArguments, CommandRefused } from './refusal.ts'
export type { CommandCaller, Commands } from './run.ts'
export { argumentsOf, createCommands } from './run.ts'
export type { AnswerOf, CommandName } from './table.ts'
export { commandTable } from './table.ts'
