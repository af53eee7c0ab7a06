import type { FastifyInstance, FastifyRequest } from 'fastify'
import { HOUR, happened, isOnceError, type Pointer, prevented } from 'onceonly'
import { type Answer, jsonAnswer, type RouteDefinition } from 'onceonly/http'
import type { InputTypes } from '../http/input.ts'
import { sendProblem } from '../http/problem.ts'
import type { protectRoutes } from '../http/protect.ts'
import { problemOf } from '../http/refusal.ts'
import { routeOptions } from '../openapi/route.ts'
import type { ServerParts } from '../parts.ts'
import type { Base } from '../store.ts'
import { callerOf } from '../workspaces/authenticate.ts'
import { duplicateAnswer, pendingAnswer, type SendAnswer, sendAnswer } from './answers.ts'
import { REQUEST_BYTES_MOST } from './attachments.ts'
import { commandOf } from './command.ts'
import { readConversation, readLeads, readMessage, readMessages, sendMessage } from './document.ts'
import { leadById } from './leads.ts'
import { conversationOf, leadOf, type MessageRow, messageOf } from './message.ts'
import { conversationById, listLeads, listMessages, messageById, messageUnder } from './reads.ts'
import { type Sender, type Sent, secondsOf } from './send.ts'

interface Parts extends Pick<ServerParts, 'base'> {
  readonly protect: ReturnType<typeof protectRoutes<unknown>>
  readonly sender: Sender
}

/** The same key is answered from its record for a day; the guard's window is much shorter. */
const KEY_MS = 24 * HOUR
const JSON_TYPE = 'application/json; charset=utf-8'

/** `POST /api/messages`: first the caller's key, if there is one, then the guard on the content. */
export function addSend(server: FastifyInstance, { protect, base, sender }: Parts): void {
  const definition: RouteDefinition<FastifyRequest> & { readonly effect: 'external'; readonly key: 'optional' } = {
    name: 'messages.send',
    effect: 'external',
    respondAsync: true,
    // The handler asks the guard by itself, with a key or without: another key for the same content meets the lock, too.
    key: 'optional',
    retainMs: KEY_MS,
    keep: 'pointer',
    rebuild: async (pointer, request) => rebuilt(base, callerOf(request).workspaceId, pointer),
    // A process that died under a key left its message, or nothing: the message carries the claim of the key.
    probe: async ({ tenant }, { effectKey, pointer }) => {
      const row = pointer === null ? await messageUnder(base, tenant, effectKey) : null
      const found = row === null ? pointer : { type: 'message', id: row.id }
      return found === null ? prevented : happened({ status: 202, headers: [], pointer: found })
    },
    about: {
      documentation: '/docs#messages.send',
      businessUniqueness:
        'A unique row for each content within its window, and a unique index on the claim of the key.',
      outbox: 'The message row is the outbox: a worker sends what was accepted and left behind.',
      externalCalls: 'Webhooks get the effect key; other providers are called once, and a lost answer stays unknown.',
      tests: 'test/contract/service/messages-guard.test.ts, test/proof/service/messages-crash.test.ts',
    },
  }

  // The body is checked before anything is claimed: a message that cannot be understood holds neither a key nor a lock.
  const declaration = { ...sendMessage, repeat: { kind: 'command' as const, definition } }
  const options = {
    ...routeOptions(declaration),
    bodyLimit: REQUEST_BYTES_MOST,
  }
  server.withTypeProvider<InputTypes>().post(
    '/api/messages',
    options,
    protect(definition, async (request, reply, context) => {
      const { workspaceId } = callerOf(request)
      let sent: Sent
      try {
        sent = await sender.send(workspaceId, commandOf(request.body), context)
      } catch (error) {
        // Once a message is accepted nothing is thrown any more, so nothing was done, and a retry is decided again.
        context?.notDone()
        if (isOnceError(error)) return sendProblem(reply, problemOf(error))
        throw error
      }
      if (sent.kind === 'refused') {
        context?.notDone()
        return sendProblem(reply, sent.problem)
      }
      // A pending answer is never kept: the retry shall see what became of the original.
      if (sent.kind === 'pending') context?.notDone()
      request.decision = sent.kind === 'message' ? 'first' : sent.kind
      const { status, body } = await inWords(base, sent)
      return reply.code(status).type(JSON_TYPE).send(JSON.stringify(body))
    }),
  )
}

async function inWords(base: Base, sent: Exclude<Sent, { kind: 'refused' }>): Promise<SendAnswer> {
  switch (sent.kind) {
    case 'pending':
      return pendingAnswer
    case 'message':
      return sendAnswer(sent.row, sent.lead ?? (await leadOfMessage(base, sent.row)))
    case 'duplicate':
      return duplicateAnswer(sent.row, await leadOfMessage(base, sent.row), secondsOf(sent.ageMs))
  }
}

function leadOfMessage({ sql }: Base, row: MessageRow) {
  return leadById(sql, row.workspace_id, row.lead_id)
}

/** A retry shows the message as it is now; a duplicate has the age that its first answer had. */
async function rebuilt(base: Base, workspaceId: string, { type, id }: Pointer): Promise<Answer> {
  const [messageId = '', age] = id.split(' ')
  const row = await messageById(base, workspaceId, messageId)
  if (row === null) throw new Error(`The message ${messageId} of a record is gone`)
  const lead = await leadOfMessage(base, row)
  const { status, body } = type === 'duplicate' ? duplicateAnswer(row, lead, Number(age)) : sendAnswer(row, lead)
  return jsonAnswer(status, JSON_TYPE, body)
}

/** Messages, leads and conversations, each to its own workspace only. */
export function addReads(server: FastifyInstance, { base }: Pick<Parts, 'base'>): void {
  const typed = server.withTypeProvider<InputTypes>()

  typed.get('/api/messages', routeOptions(readMessages), async (request) => {
    const { rows, cursor } = await listMessages(base, callerOf(request).workspaceId, request.query)
    return { messages: rows.map(messageOf), cursor }
  })

  typed.get('/api/messages/:id', routeOptions(readMessage), async (request, reply) => {
    const row = await messageById(base, callerOf(request).workspaceId, request.params.id)
    return row === null ? reply.callNotFound() : messageOf(row)
  })

  typed.get('/api/leads', routeOptions(readLeads), async (request) => {
    const { rows, cursor } = await listLeads(base, callerOf(request).workspaceId, request.query)
    return { leads: rows.map(leadOf), cursor }
  })

  typed.get('/api/conversations/:id', routeOptions(readConversation), async (request, reply) => {
    const row = await conversationById(base, callerOf(request).workspaceId, request.params.id)
    return row === null ? reply.callNotFound() : conversationOf(row)
  })
}
