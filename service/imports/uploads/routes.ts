import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { allowLongBody } from '../../http/connection.ts'
import { sendProblem } from '../../http/problem.ts'
import type { ServerParts } from '../../parts.ts'
import type { Base } from '../../store.ts'
import { QuotaExceeded } from '../../workspaces/quotas.ts'
import { uploadFile } from '../document.ts'
import { jobOf } from '../jobs.ts'
import { ownSearch, sendNoFile, sendNoImport } from '../routes.ts'
import { type Search, uploadsOf } from '../searches.ts'
import type { Announcer } from './announce.ts'
import { type PromisedBytes, withinPromise } from './promised.ts'
import { AWAY_MS, type Storage, StorageAway, type Stored, UPLOAD_BYTES_MOST } from './storage.ts'

interface Parts extends Pick<ServerParts, 'base' | 'quotas'> {
  readonly storage: Storage
  readonly announcer: Announcer
  readonly promised: PromisedBytes
  /** For how long nothing of a file may come. */
  readonly pauseMs: number
}

interface Named {
  Params: { readonly searchId: string; readonly name: string }
  Body: AsyncIterable<Uint8Array> | undefined
}

/** `PUT /api/imports/{searchId}/files/{name}`: safe to repeat, because a file is stored once and announced at least once. */
export function addUpload(server: FastifyInstance, parts: Parts): void {
  const { base, storage, announcer, promised, quotas, pauseMs } = parts
  // Whatever a client calls its file, it is a stream of bytes.
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', (_request, payload, done) => done(null, payload))

  const options = { config: { declaration: uploadFile } }
  server.put<Named>('/api/imports/:searchId/files/:name', options, async (request, reply) => {
    const { searchId, name } = request.params
    const search = await ownSearch(base, request, searchId)
    if (search === null) return sendNoImport(reply, searchId)
    // Only names that were declared, and so have passed the rules for names; the path on the disk is made of neither.
    if (!search.referenceFiles.includes(name)) return sendNoFile(reply, 'name')
    if (Number(request.headers['content-length'] ?? 0) > UPLOAD_BYTES_MOST) return sendTooLarge(reply)
    const partial = partialHeaderOf(request.headers)
    if (partial !== null) return sendPartial(reply, partial)
    const closed = await closedState(base, searchId, name)
    if (closed !== null) return sendClosed(reply, closed)

    allowLongBody(request.raw, pauseMs)
    const declared = request.headers['content-length']
    const stored = await putWithin(search, name, {
      content: request.body ?? nothing(),
      declared: declared === undefined && request.body !== undefined ? null : Number(declared ?? 0),
    })
    switch (stored.kind) {
      case 'full':
        return sendFull(reply, stored.error)
      case 'away':
        return sendAway(reply, stored.error, 'upload the file again')
      case 'too_large':
        return sendTooLarge(reply)
      case 'other':
        return sendOther(reply, name)
      case 'stored':
      case 'same': {
        if ((await announcer.announce({ searchId, name }, stored.file)) === 'other') {
          // Another server, whose storage this one does not share, was faster.
          await storage.discard({ searchId, name })
          return sendOther(reply, name)
        }
        const { etag, bytes } = stored.file
        const code = stored.kind === 'stored' ? 201 : 200
        return reply.code(code).header('etag', `"${etag}"`).send({ searchId, name, bytes, etag })
      }
    }
  })

  async function putWithin({ workspaceId, searchId }: Search, name: string, body: Body): Promise<Put> {
    const upload = { searchId, name }
    try {
      using _place = quotas.enter('uploads', workspaceId)
      const promise = (bytes: number) => promised.promise(workspaceId, upload, bytes)
      const stored = await storage.put(upload, withinPromise(body.content, body.declared, promise))
      if (stored.kind === 'too_large' || stored.kind === 'other') await promised.forget(upload)
      return stored
    } catch (error) {
      await promised.forget(upload)
      if (error instanceof StorageAway) return { kind: 'away', error }
      if (error instanceof QuotaExceeded) return { kind: 'full', error }
      throw error
    }
  }
}

interface Body {
  readonly content: AsyncIterable<Uint8Array>
  /** Bytes; null where the client did not say. */
  readonly declared: number | null
}

type Put =
  | Stored
  | { readonly kind: 'away'; readonly error: StorageAway }
  | { readonly kind: 'full'; readonly error: QuotaExceeded }

/** Null while the import takes files, and for a file that it still has: that may be sent again. */
export async function closedState(base: Base, searchId: string, name: string): Promise<string | null> {
  const state = (await jobOf(base.sql, searchId))?.state
  if (state !== 'Completed' && state !== 'Error') return null
  const isStored = (await uploadsOf(base.sql, searchId)).some(
    (upload) => upload.name === name && upload.stored_at !== null && upload.removed_at === null,
  )
  return isStored ? null : state
}

/** With these the bytes of the body are not those of the file, and would be stored as if they were. */
function partialHeaderOf(headers: IncomingHttpHeaders): string | null {
  if (headers['content-range'] !== undefined) return 'Content-Range'
  const encoding = headers['content-encoding'] ?? 'identity'
  return encoding.trim().toLowerCase() === 'identity' ? null : 'Content-Encoding'
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

function sendPartial(reply: FastifyReply, field: string): FastifyReply {
  reply.header('connection', 'close')
  return sendProblem(reply, {
    status: field === 'Content-Range' ? 400 : 415,
    name: 'not-the-file-itself',
    detail: `A file is uploaded whole and as it is, without ${field}.`,
    errors: [{ field, detail: 'is not understood here' }],
  })
}

function sendFull(reply: FastifyReply, { problem }: QuotaExceeded): FastifyReply {
  // As below: the rest of the body is not read.
  reply.header('connection', 'close')
  return sendProblem(reply, problem)
}

function sendTooLarge(reply: FastifyReply): FastifyReply {
  // The rest of the body is not read, so nothing else can come over this connection.
  reply.header('connection', 'close')
  const detail = `A file may have ${UPLOAD_BYTES_MOST} bytes at most.`
  return sendProblem(reply, { name: 'file-too-large', detail })
}

export function sendClosed(reply: FastifyReply, state: string): FastifyReply {
  const detail = `The import is in the state ${state}, and takes no more files.`
  return sendProblem(reply, { name: 'import-closed', detail })
}

/** @param field where the other content was named, if not by the body itself */
export function sendOther(reply: FastifyReply, name: string, field?: string): FastifyReply {
  const detail = `${name} was uploaded before with other content, which stays; start another import for this one.`
  const errors = field === undefined ? {} : { errors: [{ field, detail: 'announce other content than was accepted' }] }
  return sendProblem(reply, { name: 'file-already-uploaded', detail, ...errors })
}

/** @param next what the client does then */
export function sendAway(reply: FastifyReply, { message }: StorageAway, next: string): FastifyReply {
  return sendProblem(reply, { name: 'busy', detail: `${message}; ${next}.`, retryAfterMs: AWAY_MS })
}
