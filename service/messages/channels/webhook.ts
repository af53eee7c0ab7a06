import type { Channel } from './channel.ts'
import { callProvider } from './http.ts'

/** A provider of one's own: it gets the message as JSON, and the effect key to recognise a repeated one by. */
export function createWebhook(url: string, honoursKeys: boolean): Channel {
  return {
    name: 'webhook',
    dedups: honoursKeys,
    reference: ({ effectKey }) => effectKey,
    reaches: () => true,
    complaints: () => [],
    send({ messageId, effectKey, workspaceId, phone, email, body, attachments }, signal) {
      const headers = { 'content-type': 'application/json', 'idempotency-key': effectKey }
      const message = { messageId, workspaceId, recipientPhone: phone, recipientEmail: email, message: body }
      const init = { headers, signal, body: JSON.stringify({ ...message, attachments }) }
      return callProvider(url, init, ({ id, messageId: theirs }) => id ?? theirs, `webhook:${effectKey}`)
    },
  }
}
