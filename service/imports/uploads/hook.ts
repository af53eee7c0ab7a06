import type { FastifyInstance, FastifyReply } from 'fastify'
import { type FieldError, sendInvalid, sendProblem } from '../../http/problem.ts'
import type { ServerParts } from '../../parts.ts'
import { receiveNotification } from '../document.ts'
import { jobOf } from '../jobs.ts'
import { searchById, type UploadRow, uploadsOf } from '../searches.ts'
import type { ObjectCreated } from './notification.ts'
import type { Receiver } from './receive.ts'
import { sendAway, sendOther } from './routes.ts'
import { type Confirmation, fieldOf, readNotification } from './s3.ts'
import { knowsSecret } from './secret.ts'
import { type Storage, StorageAway } from './storage.ts'

type Created = Extract<ReturnType<typeof readNotification>, { readonly created: unknown }>

/** What became of the records of a notification. */
interface Counts {
  received: number
  duplicates: number
  /** Not in the bucket yet: looked for until the import ends. Left out where there are none. */
  postponed?: number
  ignored: number
}

interface Parts extends Pick<ServerParts, 'base' | 'log'> {
  readonly storage: Storage
  readonly receiver: Receiver
  readonly hookSecret: string
}

/** S3 puts one record into a notification; queues in between may put some together. */
const HOOK_BYTES_MOST = 256 * 1024

/**
 * `POST /hooks/s3`: notifications of a storage, by itself, by SNS or by EventBridge. Every record is checked before the
 * first is received.
 */
export function addHook(server: FastifyInstance, { base, storage, receiver, hookSecret, log }: Parts): void {
  // As bytes, because they may be signed.
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))

  const options = { bodyLimit: HOOK_BYTES_MOST, config: { declaration: receiveNotification } }
  server.post<{ Body: Buffer | undefined }>('/hooks/s3', options, async (request, reply) => {
    const body = request.body ?? Buffer.alloc(0)
    if (!knowsSecret(hookSecret, request.headers, body)) return sendUnknownSender(reply)
    const text = utf8(body)
    if (text === null) return sendInvalid(reply, [{ field: 'body', detail: 'is not UTF-8' }])
    const read = readNotification(text, storage.locate)
    if ('errors' in read) return sendInvalid(reply, read.errors)
    if ('confirm' in read) return askOperator(read.confirm)
    try {
      return await receiveAll(reply, read)
    } catch (error) {
      if (error instanceof StorageAway) return sendAway(reply, error, 'send it again')
      throw error
    }
  })

  async function receiveAll(reply: FastifyReply, read: Created): Promise<Counts | FastifyReply> {
    const created = await withoutFinished(read.created)
    const refusal = await firstRefusal(created)
    if (refusal !== null) return sendProblem(reply, refusal)
    const ignored = read.ignored + read.created.length - created.length
    const counts: Counts = { received: 0, duplicates: 0, ignored }
    for (const each of created) {
      const receipt = await receiver.receive(each)
      switch (receipt.kind) {
        case 'handled':
          counts.received++
          break
        case 'duplicate':
          counts.duplicates++
          break
        case 'not_ours':
          counts.ignored++
          break
        case 'absent':
          counts.postponed = (counts.postponed ?? 0) + 1
          break
        case 'other':
          return sendOther(reply, each.name, 'Records')
        case 'conflict':
          return sendConflict(reply)
        case 'later':
        case 'waiting':
        case 'parked':
          return sendLater(reply)
      }
    }
    return counts
  }

  /** This server opens no address that it was sent: a sender could make it call anything. */
  function askOperator({ topic, url }: Confirmation): Counts {
    log.warn({ event: 'imports.subscription_to_confirm', topic, url }, 'open the address to let this topic send here')
    return { received: 0, duplicates: 0, ignored: 1 }
  }

  /** A finished import takes no more files: of one that was never stored nothing will ever be known. */
  async function withoutFinished(created: readonly ObjectCreated[]): Promise<readonly ObjectCreated[]> {
    const wanted = await Promise.all(
      created.map(async ({ searchId, name }) => {
        const state = (await jobOf(base.sql, searchId))?.state
        if (state !== 'Completed' && state !== 'Error') return true
        const upload = (await uploadsOf(base.sql, searchId)).find((each) => each.name === name)
        return upload === undefined || (await isStored(upload, searchId, name))
      }),
    )
    return created.filter((_, at) => wanted[at])
  }

  async function isStored(upload: UploadRow, searchId: string, name: string): Promise<boolean> {
    return upload.stored_at !== null || (await storage.look({ searchId, name })) !== null
  }

  async function firstRefusal(created: readonly ObjectCreated[]) {
    for (const [at, { searchId, name }] of created.entries()) {
      const refused = await refusalOf(searchId, name)
      if (refused === null) continue
      const errors: FieldError[] = [{ field: fieldOf(at, 'key'), detail: refused.detail }]
      return { ...refused, detail: `The key ${refused.detail}.`, errors }
    }
    return null
  }

  async function refusalOf(searchId: string, name: string) {
    if ((await searchById(base.sql, searchId)) === null) {
      return { name: 'import-not-found', detail: 'names no import' } as const
    }
    const upload = (await uploadsOf(base.sql, searchId)).find((each) => each.name === name)
    if (upload === undefined) {
      const detail = 'names no file of its import'
      return { name: 'file-not-declared', detail } as const
    }
    // What a bucket has announced comes to be seen in it, and is looked for; only the sender knows of a folder.
    if (storage.kind === 'bucket' || (await isStored(upload, searchId, name))) return null
    const detail = 'names a file that is not in the storage'
    return { name: 'file-not-stored', detail } as const
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true })

function utf8(body: Uint8Array): string | null {
  try {
    return decoder.decode(body)
  } catch {
    return null
  }
}

/** Sending it again would change nothing, so it is no retryable problem. */
function sendConflict(reply: FastifyReply): FastifyReply {
  return sendProblem(reply, {
    name: 'notification-conflict',
    detail: 'The same event was announced before with other details; the first announcement stands.',
    errors: [{ field: 'Records', detail: 'contradict an earlier announcement' }],
  })
}

function sendUnknownSender(reply: FastifyReply): FastifyReply {
  reply.header('www-authenticate', 'Bearer, Basic realm="onceonly"')
  const detail =
    'Send the hook secret as `Authorization: Bearer …`, as `X-Hook-Secret` or as the password of `Authorization: Basic …`, or sign the body: `X-Hook-Signature: sha256=…`.'
  return sendProblem(reply, { name: 'unauthorized', detail })
}

function sendLater(reply: FastifyReply): FastifyReply {
  const detail = 'The notification could not be received just now; send it again.'
  return sendProblem(reply, { name: 'busy', detail, retryAfterMs: 1_000 })
}
