import type { FastifyInstance } from 'fastify'
import { type EffectContext, HOUR, happened, isOnceError, type Ledger, prevented, released } from 'onceonly'
import { type BulkItem, createBulk, type ItemWords, readBatch } from 'onceonly/http'
import { refuseHeaderKey } from '../http/batch.ts'
import { checked, type Fields } from '../http/input.ts'
import { sendInvalid, sentenceOf } from '../http/problem.ts'
import { type Log, reportTo } from '../logs.ts'
import type { ServerParts } from '../parts.ts'
import type { Base } from '../store.ts'
import { callerOf } from '../workspaces/authenticate.ts'
import { duplicateText } from './answers.ts'
import { REQUEST_BYTES_MOST } from './attachments.ts'
import { commandOf, sendRequest } from './command.ts'
import { batchSend } from './document.ts'
import { messageUnder } from './reads.ts'
import { type Sender, secondsOf } from './send.ts'

interface Parts extends Pick<ServerParts, 'base'> {
  readonly once: Ledger<unknown>
  readonly sender: Sender
}

/** What is recorded of an item: the message, and whether it was there before. */
interface ItemValue {
  readonly messageId: string
  readonly duplicateSeconds: number | null
}

const KEY_MS = 24 * HOUR
/** Sends of one batch at once: a provider's connections are not ours to use up. */
const LANES = 10

/** `POST /api/messages:batchSend`: every item is a send of its own, with its own key and its own lock. */
export function addBatchSend(server: FastifyInstance, { once, base, sender }: Parts): void {
  const bulk = createBulk<Fields, ItemValue>(once, {
    name: 'messages.batchSend',
    effect: 'external',
    retainMs: KEY_MS,
    lanes: LANES,
    onError: reportTo(server.log),
    about: {
      documentation: '/docs#messages.batchSend',
      businessUniqueness:
        'A unique row for each content within its window, and a unique index on the claim of the item.',
      outbox: 'The message row is the outbox: a worker sends what was accepted and left behind.',
      externalCalls: 'Webhooks get the effect key; other providers are called once, and a lost answer stays unknown.',
      tests: 'test/proof/service/messages-batch.test.ts, test/proof/service/messages-crash.test.ts',
    },
    show: (value) => wordsFor(base, value),
    probe: async ({ tenant }, { effectKey }) => {
      const row = await messageUnder(base, tenant, effectKey)
      return row === null ? prevented : happened({ messageId: row.id, duplicateSeconds: null } satisfies ItemValue)
    },
  })

  server.post(
    '/api/messages::batchSend',
    {
      bodyLimit: REQUEST_BYTES_MOST,
      preHandler: refuseHeaderKey,
      config: { declaration: { ...batchSend, repeat: { kind: 'batch', definition: bulk.definition } } },
    },
    async (request, reply) => {
      const read = readBatch(request.body)
      if ('errors' in read) return sendInvalid(reply, read.errors)
      const { workspaceId, caller } = callerOf(request)
      const identity = { tenant: workspaceId, caller, batch: read.batchId }
      const results = await bulk.run(identity, read.items, (item, attempt) =>
        sendItem({ sender, log: request.log }, workspaceId, item, attempt),
      )
      return { batchId: read.batchId, results }
    },
  )
}

async function sendItem(
  { sender, log }: { readonly sender: Sender; readonly log: Log },
  workspaceId: string,
  { input }: BulkItem<Fields>,
  attempt: EffectContext,
): Promise<ItemValue> {
  const result = checked(sendRequest, input)
  if ('errors' in result) throw undone('INVALID_INPUT', sentenceOf(result.errors))
  const sent = await attempted(log, () => sender.send(workspaceId, commandOf(result.value), attempt))
  switch (sent.kind) {
    case 'refused':
      throw undone(sent.problem.name.replaceAll('-', '_').toUpperCase(), sent.problem.detail)
    case 'pending':
      throw undone('IN_PROGRESS', 'An identical message is still being processed.')
    case 'message':
      return { messageId: sent.row.id, duplicateSeconds: null }
    case 'duplicate':
      return { messageId: sent.row.id, duplicateSeconds: secondsOf(sent.ageMs) }
  }
}

/** Until a message is accepted nothing has happened, so whatever was thrown frees the item for the next try. */
async function attempted<T>(log: Log, send: () => Promise<T>): Promise<T> {
  try {
    return await send()
  } catch (error) {
    log.error({ event: 'message.not_accepted', err: error }, 'An item of a batch was not accepted')
    const code = isOnceError(error) ? error.code.toUpperCase() : 'INTERNAL'
    throw undone(code, 'The message could not be accepted.', true)
  }
}

function undone(code: string, detail: string, retryable = false): unknown {
  return released(Object.assign(new Error(detail), { code, retryable }))
}

/** The message as it stands now, so that a retry of the batch shows what became of it. */
async function wordsFor(base: Base, { messageId, duplicateSeconds }: ItemValue): Promise<ItemWords> {
  const text = 'select status, error from messages where id = ?'
  const [row] = await base.sql.query<{ status: string; error: string | null }>(text, [messageId])
  const resourceId = messageId
  if (duplicateSeconds !== null) {
    const duplicateMessage = duplicateText(duplicateSeconds)
    return { status: 'SUCCEEDED', resourceId, duplicateOnly: true, duplicateMessage, messageStatus: row?.status }
  }
  switch (row?.status) {
    case 'sent':
      return { status: 'SUCCEEDED', resourceId, messageStatus: 'sent' }
    case 'failed':
      return { status: 'FAILED', errorCode: 'PROVIDER_REFUSED', retryable: false, resourceId, detail: row.error }
    case 'unknown':
      return { status: 'UNKNOWN', resourceId, detail: row.error }
    default:
      return { status: 'IN_PROGRESS', resourceId }
  }
}
