import type { FastifyInstance, FastifyReply } from 'fastify'
import { sendProblem } from '../../http/problem.ts'
import type { Base } from '../../store.ts'
import { requireKey } from '../../workspaces/authenticate.ts'
import type { Workspaces } from '../../workspaces/workspaces.ts'
import { uploadFile } from '../document.ts'
import { jobOf } from '../jobs.ts'
import { ownSearch, sendNoImport } from '../routes.ts'
import type { Announcer } from './announce.ts'
import { type Storage, UPLOAD_BYTES_MOST } from './storage.ts'

interface Parts {
  readonly base: Base
  readonly storage: Storage
  readonly announcer: Announcer
  readonly workspaces: Workspaces
}

interface Named {
  Params: { readonly searchId: string; readonly name: string }
  Body: AsyncIterable<Uint8Array> | undefined
}

/** `PUT /api/imports/{searchId}/files/{name}`: safe to repeat, because a file is stored once and announced at least once. */
export function addUpload(server: FastifyInstance, { base, storage, announcer, workspaces }: Parts): void {
  // Whatever a client calls its file, it is a stream of bytes.
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', (_request, payload, done) => done(null, payload))

  const options = { onRequest: requireKey(workspaces, 'imports'), config: { declaration: uploadFile } }
  server.put<Named>('/api/imports/:searchId/files/:name', options, async (request, reply) => {
    const { searchId, name } = request.params
    const search = await ownSearch(base, request, searchId)
    if (search === null) return sendNoImport(reply, searchId)
    // Only names that were declared, and so have passed the rules for names; the path on the disk is made of neither.
    if (!search.referenceFiles.includes(name)) return sendNoFile(reply)
    if (Number(request.headers['content-length'] ?? 0) > UPLOAD_BYTES_MOST) return sendTooLarge(reply)
    const there = await storage.has(searchId, name)
    const state = (await jobOf(base.sql, searchId))?.state
    if (!there && (state === 'Completed' || state === 'Error')) return sendClosed(reply, state)

    const stored = await storage.put(searchId, name, request.body ?? nothing())
    switch (stored.kind) {
      case 'too_large':
        return sendTooLarge(reply)
      case 'other':
        return sendOther(reply, name)
      case 'stored':
      case 'same': {
        await announcer.announce({ searchId, name }, stored.file)
        const { etag, bytes } = stored.file
        const code = stored.kind === 'stored' ? 201 : 200
        return reply.code(code).header('etag', `"${etag}"`).send({ searchId, name, bytes, etag })
      }
    }
  })
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

function sendNoFile(reply: FastifyReply): FastifyReply {
  return sendProblem(reply, {
    status: 404,
    name: 'file-not-declared',
    title: 'File not declared',
    detail: 'This import has no file of that name; its files were named when it was started.',
    retryable: false,
    errors: [{ field: 'name', detail: 'names no file of this import' }],
  })
}

function sendTooLarge(reply: FastifyReply): FastifyReply {
  // The rest of the body is not read, so nothing else can come over this connection.
  reply.header('connection', 'close')
  const detail = `A file may have ${UPLOAD_BYTES_MOST} bytes at most.`
  return sendProblem(reply, { status: 413, name: 'file-too-large', title: 'File too large', detail, retryable: false })
}

function sendClosed(reply: FastifyReply, state: string): FastifyReply {
  const detail = `The import is in the state ${state}, and takes no more files.`
  return sendProblem(reply, { status: 409, name: 'import-closed', title: 'Import closed', detail, retryable: false })
}

function sendOther(reply: FastifyReply, name: string): FastifyReply {
  const detail = `${name} was uploaded before with other content, which stays; start another import for this one.`
  return sendProblem(reply, {
    status: 409,
    name: 'file-already-uploaded',
    title: 'File already uploaded',
    detail,
    retryable: false,
  })
}
