import type { FastifyInstance } from 'fastify'
import type { InputTypes } from '../../http/input.ts'
import { routeOptions } from '../../openapi/route.ts'
import type { ServerParts } from '../../parts.ts'
import { readUpload } from '../document.ts'
import { filePath, ownSearch, sendNoFile, sendNoImport } from '../routes.ts'
import { uploadsOf } from '../searches.ts'
import type { PromisedBytes } from './promised.ts'
import { closedState, sendClosed } from './routes.ts'
import type { DirectUpload, Storage } from './storage.ts'

interface Parts extends Pick<ServerParts, 'base'> {
  readonly storage: Pick<Storage, 'direct'>
  readonly promised: PromisedBytes
}

/** `GET /api/imports/{searchId}/files/{name}/upload`: where a client uploads a file to, whichever storage there is. */
export function addDirect(server: FastifyInstance, { base, storage, promised }: Parts): void {
  // An import that does not exist is reported before a wrong length.
  const options = { attachValidation: true, ...routeOptions(readUpload) }
  const typed = server.withTypeProvider<InputTypes>()
  typed.get('/api/imports/:searchId/files/:name/upload', options, async (request, reply) => {
    const { searchId, name } = request.params
    const search = await ownSearch(base, request, searchId)
    if (search === null) return sendNoImport(reply, searchId)
    if (!search.referenceFiles.includes(name)) return sendNoFile(reply, 'name')
    if (request.validationError !== undefined) throw request.validationError
    const { bytes } = request.query
    const closed = await closedState(base, searchId, name)
    if (closed !== null) return sendClosed(reply, closed)
    const isStored = (await uploadsOf(base.sql, searchId)).some((each) => each.name === name && each.stored_at !== null)
    // A file that is there is compared by this server: a bucket would only refuse it.
    const direct = isStored ? null : await storage.direct({ searchId, name }, bytes)
    // What goes past this server can only be refused here.
    if (direct !== null) await promised.promise(search.workspaceId, { searchId, name }, bytes)
    return reply.header('cache-control', 'no-store').send(answerOf(direct, filePath(search, name)))
  })
}

function answerOf(direct: DirectUpload | null, path: string) {
  if (direct === null) return { to: 'server', method: 'PUT', url: path, headers: {}, expiresAt: null }
  const { url, headers, expiresAt } = direct
  return { to: 'storage', method: 'PUT', url, headers, expiresAt: new Date(expiresAt).toISOString() }
}
