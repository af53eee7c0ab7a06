/** `onceonly/console`: the server side of the console, for servers that show its pages (`onceonly/pages`). */

export type { ConsoleAccess, ConsoleTokens } from './access.ts'
export { createConsoleAccess } from './access.ts'
export type { Console, ConsoleOptions, OperatorAction } from './console.ts'
export { createConsole } from './console.ts'
export type { ConsoleAnswer, ConsoleRequest } from './exchange.ts'
export type { GatewayConsoleOptions } from './gateway.ts'
export { gatewayConsole } from './gateway.ts'
export { CONSOLE_API } from './session.ts'
export type { Totalling } from './totals.ts'
