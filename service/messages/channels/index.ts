import type { Config } from '../../config.ts'
import type { Channel, ChannelName } from './channel.ts'
import { local } from './local.ts'
import { createSmtp } from './smtp.ts'
import { createTwilio } from './twilio.ts'
import { createWebhook } from './webhook.ts'

export interface Channels {
  /** Null where the channel is not configured. */
  get(name: string): Channel | null
  /** The configured channel that reaches the recipient; the local mailbox, when none does. */
  pick(to: { readonly phone: string | null; readonly email: string | null }): Channel
}

export function createChannels(config: Config): Channels {
  const { smtpUrl, mailFrom, webhookUrl, webhookHonoursKeys, twilioUrl, sendTimeoutMs } = config
  const configured = [
    ...(webhookUrl === null ? [] : [createWebhook(webhookUrl, webhookHonoursKeys)]),
    ...(twilioUrl === null ? [] : [createTwilio(twilioUrl)]),
    ...(smtpUrl === null ? [] : [createSmtp({ url: smtpUrl, from: mailFrom, timeoutMs: sendTimeoutMs })]),
    local,
  ]
  const byName = new Map<string, Channel>(configured.map((channel) => [channel.name satisfies ChannelName, channel]))
  return {
    get: (name) => byName.get(name) ?? null,
    pick: (to) => configured.find((channel) => channel.reaches(to)) ?? local,
  }
}
