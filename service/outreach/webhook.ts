import { DAY, notDone } from 'onceonly'
import { type Channel, type HttpPlan, type HttpSent, httpChannel, providers } from 'onceonly/run'
import type { CallRate } from '../config-rates.ts'
import { createSlots } from '../messages/slots.ts'
import type { Base } from '../store.ts'
import { rowSweep, type Sweep, unheld } from '../workspaces/retention.ts'
import { createPublicFetch } from './public-fetch.ts'

/** The request of a webhook step. Its body names the workspace. */
export type WebhookPlan = HttpPlan<{ readonly workspaceId: string; readonly [member: string]: unknown }>

interface Parts {
  readonly base: Base
  /** Hosts that webhooks may reach although they are not public. */
  readonly webhookHosts: readonly string[]
  /** Of each host, for each workspace; null for no limit. */
  readonly rate: CallRate | null
  readonly sendTimeoutMs: number
  failed(host: string, error: unknown): void
}

const ROOM = 'webhook '

/** What the names of all slots of a workspace begin with. */
export function slotsOf(workspaceId: string): string {
  return `${ROOM}${workspaceId} `
}

/**
 * Webhook steps call any host, each under the key of its step. A rate is that of a workspace at a host: a workspace that
 * calls a host much does not hold up the calls of others.
 */
export function createWebhook({
  base,
  webhookHosts,
  rate,
  sendTimeoutMs,
  failed,
}: Parts): Channel<WebhookPlan, HttpSent> {
  const channel = httpChannel({ name: 'webhook', provider: providers.http, fetch: createPublicFetch(webhookHosts) })
  if (rate === null) return channel
  const slots = createSlots({ base, rates: { get: () => rate }, callMs: sendTimeoutMs, failed })
  return {
    ...channel,
    async send(plan, context) {
      const { host } = new URL(plan.url)
      const taken = await slots.take(`${slotsOf(String(plan.body?.workspaceId))}${host}`).catch((error: unknown) => {
        throw notDone(error)
      })
      if (taken.kind === 'full') {
        const turn = { retryAfterMs: taken.waitMs, counted: false }
        throw notDone(new Error(`The rate of ${host} is used up`), turn)
      }
      const { slot } = taken
      try {
        if (!slot.isGood()) throw notDone(new Error('Held up before the call'), { counted: false })
        // No longer than its slot is kept for it if this process dies.
        const signal = AbortSignal.any([context.signal, AbortSignal.timeout(sendTimeoutMs)])
        return await channel.send(plan, { ...context, signal, derive: (name) => context.derive(name) })
      } finally {
        await slot.end()
      }
    },
  }
}

/** Of hosts that were not called for a day nothing is known that counts. */
const UNUSED_MS = 1 * DAY
const SLOTS = 500

export function webhookSlotSweep(base: Base): Sweep {
  const remove = `delete from message_slots where (channel, slot) in (select channel, slot from message_slots
    where channel like '${ROOM}%' and free_at <= ${base.sql.now} - ? limit ? ${unheld(base)}) returning slot`
  const from = { text: `select min(free_at) from message_slots where channel like '${ROOM}%'`, agoMs: UNUSED_MS }
  return rowSweep(base, 'slots of webhooks', remove, { values: [UNUSED_MS], most: SLOTS, from })
}
