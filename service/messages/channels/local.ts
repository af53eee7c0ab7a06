import type { Channel } from './channel.ts'

/**
 * Delivers into the local mailbox: the row of the message is the delivery, and the console shows it. It is labelled for
 * what it is by its name and by the id that it answers.
 */
export const local: Channel = {
  name: 'local',
  dedups: true,
  reference: ({ messageId }) => messageId,
  reaches: () => true,
  complaints: () => [],
  send: async ({ messageId }) => ({ kind: 'sent', providerMessageId: `local:${messageId}` }),
}
