import type { FastifyInstance } from 'fastify'
import { isOnceError } from 'onceonly'
import type { InputTypes } from '../http/input.ts'
import { sendProblem } from '../http/problem.ts'
import { routeOptions } from '../openapi/route.ts'
import type { ServerParts } from '../parts.ts'
import type { Delivery } from './deliver.ts'
import { resolveMessage } from './document.ts'
import { messageOf } from './message.ts'
import { anyMessage } from './reads.ts'

interface Parts extends Pick<ServerParts, 'base'> {
  readonly delivery: Delivery
}

const NOT_SENT = 'An operator found that it was not sent'
const endsAs = { sent: 'sent', not_sent: 'failed' } as const

/** `POST /api/messages/{id}/resolve`: an operator's word on a message whose outcome is unknown. */
export function addResolve(server: FastifyInstance, { base, delivery }: Parts): void {
  server
    .withTypeProvider<InputTypes>()
    .post('/api/messages/:id/resolve', routeOptions(resolveMessage), async (request, reply) => {
      const { outcome } = request.body
      const row = await anyMessage(base, request.params.id)
      if (row === null) return reply.callNotFound()
      if (row.status === endsAs[outcome]) return messageOf(row)
      const resolution =
        outcome === 'sent'
          ? { kind: 'sent' as const, providerMessageId: null }
          : { kind: 'failed' as const, error: NOT_SENT }
      try {
        if (row.status === 'unknown') return messageOf(await delivery.resolve(row, resolution, 'operator'))
      } catch (error) {
        // Another resolution was faster: its outcome is answered below.
        if (!isOnceError(error) || error.retryable) throw error
        await delivery.follow(row)
      }
      const { status } = (await anyMessage(base, row.id)) ?? row
      return sendProblem(reply, {
        name: 'not-unknown',
        detail: `The message ${row.id} is ${status}; only an unknown message can be resolved.`,
      })
    })
}
