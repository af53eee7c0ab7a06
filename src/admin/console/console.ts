import { isOnceError } from '../../ledger/core/errors.ts'
import { fromTexts, type Given } from '../commands/argument.ts'
import type { CommandParts } from '../commands/command.ts'
import { hint } from '../commands/hint.ts'
import { BadArguments, CommandRefused } from '../commands/refusal.ts'
import { type Commands, createCommands } from '../commands/run.ts'
import { type CommandName, commandOf, commandTable } from '../commands/table.ts'
import type { FiguresShape } from '../telemetry/event-shapes.ts'
import { type ConsoleTokens, createConsoleAccess } from './access.ts'
import { type ConsoleAnswer, type ConsoleRequest, emptied, invalid, json, problem } from './exchange.ts'
import { createRecorder } from './history.ts'
import { createLive } from './live.ts'
import { CONSOLE_API, createSessions, type Person, type Sessions } from './session.ts'
import type { Totalling } from './totals.ts'

/** The server side of the console, below `/api/console`: sign-in, live rates, and the commands of operators. */
export interface Console {
  /** The answer to a request that is refused whatever it asks; null for all others. For servers that check before reading the body. */
  refuse(request: ConsoleRequest): Promise<ConsoleAnswer | null>
  /** Rejects where the store cannot be reached. */
  answer(request: ConsoleRequest): Promise<ConsoleAnswer>
  /** Ends the connections of open pages, which would stay open otherwise. */
  stop(): void
}

/** Pages whose commands are not available are left out. */
export interface ConsoleOptions extends CommandParts {
  /** Where the live rates come from: `createPrometheusMeter`, or anything that has sums. */
  readonly meter: Totalling
  /** The tokens that open the console, by role. */
  readonly tokens: ConsoleTokens
  /** The refusal of requests from other machines while no token is configured. */
  readonly localOnly: string
  /** What only this process knows, for cards of the overview: `figures` of telemetry. @default none */
  readonly figures?: () => FiguresShape
  /** Called before every action that an operator takes: for the log. @default none */
  readonly onAction?: (action: OperatorAction) => void
  /** Pages for which the server has routes of its own below `/api/console`, by their names. @default none */
  readonly pages?: readonly string[]
  /** Called with errors that the page sees only as a status. @default none */
  readonly onError?: (error: unknown) => void
}

export interface OperatorAction {
  readonly action: string
  readonly by: string
}

const NAME_CHARS_MOST = 100

/**
 * The server side of the console, for the routes of your server below `CONSOLE_API`; `readPages` of `onceonly/pages` has
 * the pages that ask it.
 *
 * @example
 * ```ts
 * import { createLedger } from 'onceonly'
 * import { createAdmin } from 'onceonly/admin'
 * import { createConsole } from 'onceonly/console'
 * import { sqliteStore } from 'onceonly/sqlite'
 * import { createPrometheusMeter, createTelemetry } from 'onceonly/telemetry'
 *
 * const store = sqliteStore('once.db')
 * const meter = createPrometheusMeter()
 * const { ledger: on, around, figures } = createTelemetry({ meter })
 * const admin = createAdmin({ store, ledger: createLedger({ store, on, around }) })
 * const tokens = { operator: process.env.OPERATOR_TOKEN ?? null, viewer: null, chosen: true }
 * const operators = createConsole({ admin, meter, figures, tokens, localOnly: 'Set OPERATOR_TOKEN.' })
 * ```
 */
export function createConsole(options: ConsoleOptions): Console {
  const { admin, tokens, localOnly, figures, onAction = () => {}, onError = () => {} } = options
  const access = createConsoleAccess(tokens)
  const sessions = createSessions(access, admin.sessions, localOnly)
  const live = createLive({ meter: options.meter, standing: admin.standing, onError })
  const recorder = createRecorder({
    meter: options.meter,
    standing: admin.standing,
    figures: () => ({ ...figures?.() }),
    storage: admin.history,
    onError,
  })
  const commands = createCommands(options)
  const pages = [...pagesOf(commands), ...(options.pages ?? [])]

  const sessionOf = (person: Person | null) => ({
    signedIn: person !== null,
    role: person?.role ?? null,
    name: person?.name ?? null,
    localOnly: !access.chosen,
    note: access.chosen ? null : localOnly,
    pages,
  })

  async function session(request: ConsoleRequest): Promise<ConsoleAnswer> {
    switch (request.method) {
      case 'GET':
      case 'HEAD': {
        const person = await sessions.personOf(request)
        return person === null && sessions.isGuessing(request) ? guessing() : json(sessionOf(person))
      }
      case 'POST':
        return await signIn(sessions, request, sessionOf)
      case 'DELETE':
        return emptied(await sessions.signOut(request))
    }
    return absent()
  }

  async function run(name: string, given: Given, { role, name: by }: Person): Promise<unknown> {
    const caller = { role, actor: { by, via: 'console' }, onAction: (action: string) => onAction({ action, by }) }
    return (await commands.runNamed(name, given, caller)) ?? null
  }

  async function read(request: ConsoleRequest, path: string, person: Person): Promise<ConsoleAnswer> {
    if (path === '/live') {
      if (live.isFull) return problem('crowded', 'Close one of them.')
      return { kind: 'stream', attach: (response) => live.listen(response) }
    }
    const found = routeOf(path)
    if (found === null) return absent()
    // So that the last minute is on the charts, too.
    if (found.name === 'history') await recorder.record()
    // An empty value is one that the page left out.
    const given = [...new URLSearchParams(request.url.replace(/^[^?]*/, ''))].filter(([, value]) => value !== '')
    const query = Object.fromEntries(given)
    return await answered(async () => {
      const texts = { ...query, ...found.params }
      return json(await run(found.name, fromTexts(commandTable[found.name].arguments, texts), person))
    })
  }

  async function act(request: ConsoleRequest, person: Person): Promise<ConsoleAnswer> {
    const { action, ...given } = fieldsOf(await request.body())
    const command = typeof action === 'string' ? commandOf(action) : undefined
    if (command?.kind !== 'act' || command.isLocal === true) {
      return invalid([{ field: 'action', detail: `is none of ${actions.join(', ')}.${hint(String(action), actions)}` }])
    }
    return await answered(async () => json({ result: await run(String(action), given, person) }))
  }

  return {
    refuse: async (request) => sessions.refuse(request) ?? (await unsigned(sessions, request)),
    async answer(request) {
      const refused = sessions.refuse(request) ?? (await unsigned(sessions, request))
      if (refused !== null) return refused
      const path = pathOf(request)
      if (path === '/session') return await session(request)
      const person = await sessions.personOf(request)
      if (person === null) return absent()
      if (request.method === 'GET' || request.method === 'HEAD') return await read(request, path, person)
      return request.method === 'POST' && path === '/actions' ? await act(request, person) : absent()
    },
    stop() {
      live.stop()
      recorder.stop()
    },
  }
}

const actions = Object.entries(commandTable).flatMap(([name, command]) =>
  command.kind === 'act' && !('isLocal' in command) ? [name] : [],
)

const routes = Object.entries(commandTable).flatMap(([name, command]) => {
  if (command.kind === 'act') return []
  const pattern = new RegExp(`^${command.path.replace(/:(\w+)/g, '(?<$1>[^/]+)')}$`)
  return [{ name: name as CommandName, pattern }]
})

/** The command of a path, with the arguments in it; null where there is none. */
function routeOf(
  path: string,
): { readonly name: CommandName; readonly params: Readonly<Record<string, string>> } | null {
  for (const { name, pattern } of routes) {
    const found = pattern.exec(path)
    if (found === null) continue
    const params = Object.entries(found.groups ?? {}).map(([param, value]) => [param, unescaped(value)])
    return { name, params: Object.fromEntries(params) as Readonly<Record<string, string>> }
  }
  return null
}

/** A malformed escape is the name of nothing. */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** States that do not allow an action: the operator looks again. */
const conflicts: readonly string[] = [
  'not_resolvable',
  'fence_moved',
  'bad_input',
  'bad_message',
  'in_progress',
  'run_conflict',
]

async function answered(work: () => Promise<ConsoleAnswer>): Promise<ConsoleAnswer> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof BadArguments) return invalid(error.faults)
    if (error instanceof CommandRefused) {
      return error.why === 'forbidden' ? problem('forbidden', error.message) : absent(error.message)
    }
    if (!isOnceError(error)) throw error
    if (error.code === 'not_found') return absent(error.message)
    if (error.code === 'bad_option' || error.code === 'bad_identity') {
      return invalid([{ field: 'query', detail: error.message }])
    }
    if (conflicts.includes(error.code)) return problem('impossible', error.message)
    throw error
  }
}

/** Everything but the session itself needs a sign-in. */
async function unsigned(sessions: Sessions, request: ConsoleRequest): Promise<ConsoleAnswer | null> {
  if (pathOf(request) === '/session' || (await sessions.personOf(request)) !== null) return null
  if (sessions.isGuessing(request)) return guessing()
  return problem('unauthorized', 'Sign in with the viewer or the operator token.')
}

async function signIn(
  sessions: Sessions,
  request: ConsoleRequest,
  sessionOf: (person: Person) => unknown,
): Promise<ConsoleAnswer> {
  const { token, name = '' } = fieldsOf(await request.body())
  if (typeof token !== 'string') return invalid([{ field: 'token', detail: 'is not a text' }])
  if (typeof name !== 'string' || name.length > NAME_CHARS_MOST) {
    return invalid([{ field: 'name', detail: `is not a text of at most ${NAME_CHARS_MOST} characters` }])
  }
  const person = await sessions.signIn(request, token, name.trim())
  if (person !== null) return json(sessionOf(person), person.headers)
  if (sessions.isGuessing(request)) return guessing()
  return problem('unauthorized', 'This is neither the viewer nor the operator token.')
}

function guessing(): ConsoleAnswer {
  return problem('guessing', 'Too many wrong tokens came from this address; wait a minute.')
}

/** The command that each page shows, in the order of the menu. */
const pageCommands = {
  overview: 'status',
  records: 'records',
  guard: 'guard',
  events: 'events',
  sagas: 'sagas',
  runs: 'runs',
  streams: 'room',
  checklist: 'checklist',
  data: 'retention',
  audit: 'audit',
} as const satisfies Readonly<Record<string, CommandName>>

function pagesOf({ has }: Commands): readonly string[] {
  return Object.entries(pageCommands).flatMap(([page, command]) => (has(command) ? [page] : []))
}

function pathOf({ url }: ConsoleRequest): string {
  return url.replace(/\?.*$/s, '').slice(CONSOLE_API.length)
}

function fieldsOf(body: unknown): Given {
  return typeof body === 'object' && body !== null && !Array.isArray(body) ? (body as Given) : {}
}

function absent(detail = 'There is nothing here.'): ConsoleAnswer {
  return problem('absent', detail)
}
