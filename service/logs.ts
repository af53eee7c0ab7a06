import type { FastifyBaseLogger } from 'fastify'
import pino from 'pino'
import type { Config } from './config.ts'
import { prettyLines } from './logs-pretty.ts'

export type Log = FastifyBaseLogger

/** Members that never get out, wherever an object that has them is logged. */
const secretMembers = ['authorization', 'apiKey', 'key', 'token', 'secret', 'password', 'body', 'phone', 'email']

/** The members of a line that have an id which can be looked up. */
const idMembers = ['record', 'messageId', 'originalId', 'runId', 'searchId', 'lockHash', 'id'] as const
const WARN = pino.levels.values['warn'] ?? 0

/** Where the console shows what a line is about. */
function linkOf(line: object): { readonly find?: string } {
  const id = idMembers.map((name) => (line as Readonly<Record<string, unknown>>)[name]).find(isFilled)
  return id === undefined ? {} : { find: `/console/find?id=${encodeURIComponent(id)}` }
}

function isFilled(id: unknown): id is string {
  return typeof id === 'string' && id !== ''
}

/** One line of JSON for each event, ready for a log store; on a terminal, one line for a person. */
export function createLog({ logLevel }: Pick<Config, 'logLevel'>): Log {
  const options: pino.LoggerOptions = {
    level: logLevel,
    base: { pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: loggedError },
    mixin: (line, level) => (level >= WARN || 'problem' in line ? linkOf(line) : {}),
    redact: { paths: secretMembers.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' },
  }
  const forPeople = process.stdout.isTTY && process.env['NODE_ENV'] !== 'production'
  return forPeople ? pino(options, prettyLines(process.stdout)) : pino(options)
}

/** For the library's `onError`: errors that no response shows. */
export function reportTo(log: Log): (error: unknown) => void {
  return (err) => log.error({ event: 'http.fault', err }, 'fault outside of a response')
}

/** What may be logged of an error: drivers attach whole rows, statements and addresses to theirs. */
interface LoggedError {
  readonly type: string
  readonly message: string
  readonly code?: unknown
  readonly stack?: string
  readonly cause?: LoggedError
}

/** Causes of causes; more is of no use to a reader. */
const CAUSES_MOST = 3

function loggedError(error: unknown, causes = CAUSES_MOST): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, message: scrubbed(String(error)) }
  const { name, message, stack, cause } = error
  return {
    type: name,
    message: scrubbed(message),
    ...('code' in error ? { code: error.code } : {}),
    ...(stack === undefined ? {} : { stack: scrubbed(stack) }),
    ...(cause === undefined || causes === 0 ? {} : { cause: loggedError(cause, causes - 1) }),
  }
}

/** Texts that others wrote may quote what they were given: credentials, addresses and phone numbers are cut out. */
export function scrubbed(text: string): string {
  return text
    .replace(/\b([a-z][a-z0-9+.-]*:\/\/)[^\s/@]+@/gi, '$1[redacted]@')
    .replace(/\bBearer\s+\S+/gi, 'Bearer [redacted]')
    .replace(/\boo_[\w-]{8,}/g, '[redacted]')
    .replace(/[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g, '[redacted]')
    .replace(/(?:\+|\b00)\d{6,15}\b/g, '[redacted]')
}
