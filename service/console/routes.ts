import type { FastifyInstance } from 'fastify'
import { isOnceError, type Ledger, type SqlTx, type Store } from 'onceonly'
import { createOperate } from 'onceonly/operate'
import type { Description } from 'onceonly/saga'
import type { Rooms } from '../chat/index.ts'
import type { Config } from '../config.ts'
import { sendInvalid, sendProblem } from '../http/problem.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { type CollectedRoute, servedRoutes } from '../openapi/collect.ts'
import type { Runs } from '../outreach/runs.ts'
import type { Base } from '../store.ts'
import { GUARD_NAME } from '../watch.ts'
import { createAccess } from './access.ts'
import { type ActionBody, BadAction, isPreview, perform, refusedBy } from './actions.ts'
import { bothStores } from './both.ts'
import { act, signIn, signOut } from './document.ts'
import { createLive } from './live.ts'
import { addReads } from './reads.ts'
import { createSessions, LOCAL_ONLY, type Person, refuse, type Sessions } from './session.ts'

interface Parts {
  readonly once: Ledger<SqlTx>
  /** Where claims are in a store of their own; null where there is one store. */
  readonly leased: { readonly store: Store; readonly ledger: Ledger<unknown> } | null
  readonly base: Base
  readonly config: Config
  readonly metrics: Metrics
  readonly operatorToken: string
  readonly routes: readonly CollectedRoute[]
  readonly runs: Runs
  readonly rooms: Rooms
  sagas(): readonly Description[]
}

const NAME_CHARS_MOST = 100

/** `/api/console/*`: what the pages of the console ask and do. */
export function addConsole(server: FastifyInstance, parts: Parts): { stop(): void } {
  const { once, leased, base, config, metrics, operatorToken, routes, runs } = parts
  const access = createAccess(config, operatorToken)
  const sessions = createSessions(access, `${operatorToken} ${config.viewerToken ?? ''}`)
  const main = createOperate({ store: base.store, ledger: once })
  // The claims' store has no place for an audit, so that it is written where everything else is.
  const operate = leased === null ? main : bothStores(main, createOperate({ ...leased, audit: main.audit }))
  const live = createLive(server, metrics.meter, operate.standing)

  server.register(async (scope) => {
    scope.addHook('onRequest', sessions.guard)
    addSession(scope, sessions, access.configured)
    scope.register(async (signedIn) => {
      signedIn.addHook('onRequest', sessions.requireViewer)
      addReads(signedIn, {
        operate,
        sessions,
        live,
        guards: [`guard.${GUARD_NAME}`],
        sagas: parts.sagas,
        rooms: parts.rooms,
        routes: () => servedRoutes(routes),
        replay: (runId) => runs.inside.replay(runId),
      })
      signedIn.post<{ Body: ActionBody | null }>(
        '/api/console/actions',
        { config: { declaration: act } },
        async (request, reply) => {
          const body = request.body ?? {}
          const person = sessions.personOf(request)
          if (person === null) return refuse(reply, 'Sign in first.')
          if (person.role !== 'operator' && !isPreview(body))
            return refuse(reply, 'A viewer looks, and changes nothing.')
          try {
            const result = await perform({ operate, runs: runs.inside }, body, { by: person.name, via: 'console' })
            if (!isPreview(body)) server.log.info({ event: 'operator.action', action: body['action'], by: person.name })
            return { result }
          } catch (error) {
            if (error instanceof BadAction) return sendInvalid(reply, [{ field: error.field, detail: error.message }])
            const refused = refusedBy(error)
            if (refused === null) throw error
            const { status, detail } = refused
            const [name, title] = status === 404 ? ['not-found', 'Not found'] : ['not-possible', 'Not possible']
            return sendProblem(reply, { status, name, title, detail, retryable: false })
          }
        },
      )
    })
    scope.setErrorHandler((error, request, reply) => {
      // What somebody looked for and did not find is no failure of the server.
      if (isOnceError(error, 'not_found')) return reply.callNotFound()
      if (isOnceError(error, 'bad_option')) return sendInvalid(reply, [{ field: 'query', detail: error.message }])
      throw error instanceof Error ? error : new Error(`${request.method} failed`)
    })
  })
  return live
}

function addSession(server: FastifyInstance, sessions: Sessions, configured: boolean): void {
  const told = (person: Person | null) => ({
    signedIn: person !== null,
    role: person?.role ?? null,
    name: person?.name ?? null,
    localOnly: !configured,
    note: configured ? null : LOCAL_ONLY,
  })
  server.get('/api/console/session', { config: { declaration: 'page' } }, (request) => told(sessions.personOf(request)))
  server.post<{ Body: { token?: unknown; name?: unknown } | null }>(
    '/api/console/session',
    { config: { declaration: signIn } },
    async (request, reply) => {
      const { token, name = '' } = request.body ?? {}
      if (!sessions.mayTry(request)) {
        const detail = 'Too many wrong tokens came from this address; wait a minute.'
        return sendProblem(reply, {
          status: 429,
          name: 'too-many-attempts',
          title: 'Too many attempts',
          detail,
          retryable: true,
        })
      }
      if (typeof token !== 'string') return sendInvalid(reply, [{ field: 'token', detail: 'is not a text' }])
      if (typeof name !== 'string' || name.length > NAME_CHARS_MOST) {
        return sendInvalid(reply, [{ field: 'name', detail: `is not a text of at most ${NAME_CHARS_MOST} characters` }])
      }
      const person = sessions.signIn(reply, token, name.trim())
      if (person !== null) return told(person)
      const detail = 'This is neither the viewer nor the operator token.'
      return sendProblem(reply, { status: 401, name: 'unauthorized', title: 'Unauthorized', detail, retryable: false })
    },
  )
  server.delete('/api/console/session', { config: { declaration: signOut } }, (_request, reply) => {
    sessions.signOut(reply)
    return reply.code(204).send()
  })
}
