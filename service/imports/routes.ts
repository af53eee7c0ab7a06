import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { InputTypes } from '../http/input.ts'
import { sendProblem } from '../http/problem.ts'
import { readStoreTime } from '../http/store-time.ts'
import { routeOptions } from '../openapi/route.ts'
import type { ServerParts } from '../parts.ts'
import type { Base } from '../store.ts'
import { callerOf } from '../workspaces/authenticate.ts'
import { QuotaExceeded } from '../workspaces/quotas.ts'
import { readImport, startImport, startNotes } from './document.ts'
import type { HistoryView } from './history.ts'
import { type Search, searchById } from './searches.ts'
import { newSearch, startSearch, startUnkeyed } from './start.ts'
import type { Storage } from './uploads/storage.ts'
import { viewOf } from './view.ts'

interface Parts extends Pick<ServerParts, 'protect' | 'base' | 'outbox' | 'quotas'> {
  readonly storage: Pick<Storage, 'keyOf'>
}

/** `POST /api/imports`: the search, its set of files and the news of it commit together. A key is welcome, not needed. */
export function addStart(server: FastifyInstance, parts: Parts): void {
  const { protect, base, outbox, storage, quotas } = parts
  const definition = { name: 'imports.start', effect: 'transaction', key: 'optional', about: startNotes } as const
  const declaration = { ...startImport, repeat: { kind: 'command' as const, definition } }
  const options = { preHandler: readStoreTime(base), ...routeOptions(declaration) }
  server.withTypeProvider<InputTypes>().post(
    '/api/imports',
    options,
    protect(definition, async (request, reply, context) => {
      const { projectId, searchName, files: referenceFiles } = request.body
      const { workspaceId } = callerOf(request)
      const search = newSearch({ projectId, searchName, referenceFiles, workspaceId, now: request.storeTime })
      try {
        if (context === null) await startUnkeyed(base, { quotas, outbox }, search)
        else
          await startSearch(
            context.tx,
            { quotas, add: (message) => context.outbox.add(message), sql: base.sql },
            search,
          )
      } catch (error) {
        if (error instanceof QuotaExceeded) return sendProblem(reply, error.problem)
        throw error
      }
      return reply.code(201).header('location', pathOf(search)).send(startedAnswer(search, storage))
    }),
  )
}

function pathOf({ searchId }: Pick<Search, 'searchId'>): string {
  return `/api/imports/${searchId}`
}

/** Where a file is uploaded to, on this server. */
export function filePath(search: Pick<Search, 'searchId'>, name: string): string {
  return `${pathOf(search)}/files/${encodeURIComponent(name)}`
}

function startedAnswer(search: Search, { keyOf }: Pick<Storage, 'keyOf'>) {
  const { searchId, referenceFiles } = search
  const uploads = referenceFiles.map((name) => ({
    name,
    url: filePath(search, name),
    objectKey: keyOf({ searchId, name }),
  }))
  return { searchId, state: 'Uploading', uploads }
}

interface ReadParts extends Pick<Parts, 'base'> {
  readonly historyOf: (searchId: string) => Promise<readonly HistoryView[]>
}

export function addRead(server: FastifyInstance, { base, historyOf }: ReadParts): void {
  const options = routeOptions(readImport)
  server.withTypeProvider<InputTypes>().get('/api/imports/:searchId', options, async (request, reply) => {
    const { searchId } = request.params
    const search = await ownSearch(base, request, searchId)
    if (search === null) return sendNoImport(reply, searchId)
    const view = await viewOf(base.sql, search)
    return { ...view, history: await historyOf(searchId) }
  })
}

/** Null when there is none, and when it is another workspace's: a client cannot see which. */
export async function ownSearch(base: Base, request: FastifyRequest, searchId: string): Promise<Search | null> {
  // No column of text can hold such an id, so there is no such search.
  if (searchId.includes('\0') || !searchId.isWellFormed()) return null
  const search = await searchById(base.sql, searchId)
  return search?.workspaceId === callerOf(request).workspaceId ? search : null
}

export function sendNoImport(reply: FastifyReply, searchId: string): FastifyReply {
  const detail = `There is no import ${searchId}.`
  return sendProblem(reply, {
    name: 'import-not-found',
    detail,
    errors: [{ field: 'searchId', detail: 'names no import of this workspace' }],
  })
}

export function sendNoFile(reply: FastifyReply, field: string): FastifyReply {
  return sendProblem(reply, {
    name: 'file-not-declared',
    detail: 'This import has no file of that name; its files were named when it was started.',
    errors: [{ field, detail: 'names no file of this import' }],
  })
}
