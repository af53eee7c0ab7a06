import type { Description } from '../../events/saga/describe.ts'
import type { ServedRoute } from '../../http/protocol/describe.ts'
import { isOnceError } from '../../ledger/core/errors.ts'
import type { Replay } from '../../runs/replay.ts'
import type { Admin } from '../core/admin.ts'
import { createAccess, type Tokens } from './access.ts'
import { type ActionBody, BadAction, isPreview, isRefusal, perform, type StepWord } from './actions.ts'
import { type ConsoleAnswer, type ConsoleRequest, emptied, invalid, problem, told } from './exchange.ts'
import { createLive, type Totalling } from './live.ts'
import { ABSENT, type ConsoleRooms, createReads, FORBIDDEN } from './reads.ts'
import { CONSOLE_API, createSessions, type Person, type Sessions } from './session.ts'

/** The console's own server side: what its pages ask and do, below `/api/console`. */
export interface Console {
  /** Of a request that may not go on, whatever it asks; null for all others. For who must not read their bodies. */
  refuse(request: ConsoleRequest): Promise<ConsoleAnswer | null>
  /** Rejects with what the store says, when it cannot be asked. */
  answer(request: ConsoleRequest): Promise<ConsoleAnswer>
  /** Lets go of the pages that are open: they would keep their connections for ever. */
  stop(): void
}

export interface ConsoleOptions {
  /** Pages without anything behind them are left out: where `events`, `sagas`, `runs`, `streams` or `audit` is null. */
  readonly admin: Admin
  /** Where the live rates come from: `createPrometheusMeter`, or anything that can tell a sum. */
  readonly meter: Totalling
  readonly tokens: Tokens
  /** What whoever comes from elsewhere is told while nobody has chosen a token. */
  readonly localOnly: string
  /** The operations whose keys are contents. */
  readonly guards?: readonly string[]
  /** What the design checklist is made of. */
  readonly routes?: () => readonly ServedRoute[]
  readonly sagas?: () => readonly Description[]
  readonly rooms?: ConsoleRooms
  /** Of engines that know more about their runs than the rows do. */
  readonly runs?: {
    replay(runId: string): Promise<Replay>
    resolve(runId: string, key: string, word: StepWord): Promise<unknown>
  }
  /** Told of everything that somebody did, or tried to: for the log. */
  readonly onAction?: (action: OperatorAction) => void
  readonly onError?: (error: unknown) => void
}

export interface OperatorAction {
  readonly action: string
  readonly by: string
}

const NAME_CHARS_MOST = 100

export function createConsole(options: ConsoleOptions): Console {
  const { admin, tokens, localOnly, guards = [], routes = null, rooms = null, runs = null } = options
  const { sagas = () => [], onAction = () => {}, onError = () => {} } = options
  const access = createAccess(tokens)
  const sessions = createSessions(access, admin.sessions, localOnly)
  const live = createLive({ meter: options.meter, standing: admin.standing, onError })
  const reads = createReads({ admin, guards, routes, sagas, rooms, replay: runs?.replay ?? null })
  const resolveStep = runs?.resolve ?? ((runId, key, word) => resolveIn(admin, runId, key, word))
  const pages = pagesOf(options)

  const who = (person: Person | null) => ({
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
        return person === null && sessions.isGuessing(request) ? guessing() : told(who(person))
      }
      case 'POST':
        return await signIn(sessions, request, who)
      case 'DELETE':
        return emptied(await sessions.signOut(request))
    }
    return absent()
  }

  async function look(request: ConsoleRequest, path: string, person: Person): Promise<ConsoleAnswer> {
    if (path === '/live') {
      if (live.isFull) return problem('crowded', 'Close one of them.')
      return { kind: 'stream', attach: (response) => live.listen(response) }
    }
    const found = reads(path)
    if (found === null) return absent()
    const query = Object.fromEntries(new URLSearchParams(request.url.replace(/^[^?]*/, '')))
    const isOperator = person.role === 'operator'
    try {
      const value = await found.answer({ query, params: found.params, isOperator })
      if (value === ABSENT) return absent()
      return value === FORBIDDEN ? problem('forbidden', 'This is for operators.') : told(value)
    } catch (error) {
      // What somebody looked for and did not find is no failure of the server.
      if (isOnceError(error, 'not_found')) return absent(error.message)
      if (isOnceError(error, 'bad_option')) return invalid([{ field: 'query', detail: error.message }])
      throw error
    }
  }

  async function act(request: ConsoleRequest, person: Person): Promise<ConsoleAnswer> {
    const body = fieldsOf(await request.body())
    if (person.role !== 'operator' && !isPreview(body)) {
      return problem('forbidden', 'A viewer looks, and changes nothing.')
    }
    if (!isPreview(body)) onAction({ action: String(body['action']), by: person.name })
    try {
      return told({ result: await perform({ admin, resolveStep }, body, { by: person.name, via: 'console' }) })
    } catch (error) {
      if (error instanceof BadAction) return invalid([{ field: error.field, detail: error.message }])
      if (isOnceError(error, 'not_found')) return absent(error.message)
      if (isRefusal(error)) return problem('impossible', error.message)
      throw error
    }
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
      if (request.method === 'GET' || request.method === 'HEAD') return await look(request, path, person)
      return request.method === 'POST' && path === '/actions' ? await act(request, person) : absent()
    },
    stop: live.stop,
  }
}

/** Everything but the session itself is for those who are signed in. */
async function unsigned(sessions: Sessions, request: ConsoleRequest): Promise<ConsoleAnswer | null> {
  if (pathOf(request) === '/session' || (await sessions.personOf(request)) !== null) return null
  if (sessions.isGuessing(request)) return guessing()
  return problem('unauthorized', 'Sign in with the viewer or the operator token.')
}

async function signIn(
  sessions: Sessions,
  request: ConsoleRequest,
  who: (person: Person) => unknown,
): Promise<ConsoleAnswer> {
  const { token, name = '' } = fieldsOf(await request.body())
  if (typeof token !== 'string') return invalid([{ field: 'token', detail: 'is not a text' }])
  if (typeof name !== 'string' || name.length > NAME_CHARS_MOST) {
    return invalid([{ field: 'name', detail: `is not a text of at most ${NAME_CHARS_MOST} characters` }])
  }
  const person = await sessions.signIn(request, token, name.trim())
  if (person !== null) return told(who(person), person.headers)
  if (sessions.isGuessing(request)) return guessing()
  return problem('unauthorized', 'This is neither the viewer nor the operator token.')
}

function guessing(): ConsoleAnswer {
  return problem('guessing', 'Too many wrong tokens came from this address; wait a minute.')
}

/** The pages that have something to show, in the order in which they are listed. */
function pagesOf({ admin, guards = [], routes, rooms }: ConsoleOptions): readonly string[] {
  const behind = {
    overview: true,
    records: true,
    guard: guards.length > 0,
    events: admin.events !== null,
    sagas: admin.sagas !== null,
    runs: admin.runs !== null,
    streams: admin.streams !== null && rooms !== undefined,
    checklist: routes !== undefined,
    audit: admin.audit !== null,
  }
  return Object.entries(behind).flatMap(([name, has]) => (has ? [name] : []))
}

async function resolveIn({ runs }: Admin, runId: string, key: string, word: StepWord): Promise<void> {
  const { kind, result, error } = word
  switch (kind) {
    case 'succeeded':
      return await runs?.resolve(runId, key, { kind, result })
    case 'failed':
      return await runs?.resolve(runId, key, { kind, error: new Error(error ?? 'A person found that it failed') })
    case 'not_done':
      return await runs?.resolve(runId, key, { kind })
  }
}

function pathOf({ url }: ConsoleRequest): string {
  return url.replace(/\?.*$/s, '').slice(CONSOLE_API.length)
}

function fieldsOf(body: unknown): ActionBody {
  return typeof body === 'object' && body !== null && !Array.isArray(body) ? (body as ActionBody) : {}
}

function absent(detail = 'There is nothing here.'): ConsoleAnswer {
  return problem('absent', detail)
}
