import type { FastifyInstance } from 'fastify'
import type { Ledger } from 'onceonly'
import type { CallRate } from '../config-rates.ts'
import { protectRoutes } from '../http/protect.ts'
import type { ServerParts } from '../parts.ts'
import type { Sweep } from '../workspaces/retention.ts'
import { addBatchSend } from './batch-route.ts'
import { type ChannelName, LATE_SHARE } from './channels/channel.ts'
import { type Channels, createChannels } from './channels/index.ts'
import { createDelivery, type Delivery } from './deliver.ts'
import { addLocks } from './locks.ts'
import { addResolve } from './resolve.ts'
import { leadSweep, messageSweep, originalSweep } from './retention.ts'
import { addReads, addSend } from './routes.ts'
import { createSender, type Sender, WINDOW_MS } from './send.ts'
import { createSlots } from './slots.ts'
import { startWorker } from './worker.ts'

interface Parts extends Pick<ServerParts, 'base' | 'config' | 'quotas' | 'watch'> {
  /** Of what runs under a lease: it may have a store of its own. */
  readonly once: Ledger<unknown>
  /** Of the store that has the messages: their deliveries are recorded beside them. */
  readonly ledger: Ledger<unknown>
}

export interface Messages {
  readonly sender: Sender
  readonly channels: Channels
  readonly delivery: Delivery
  readonly sweeps: readonly Sweep[]
  stop(): Promise<void>
}

/** The messages system: its routes, and the worker that finishes what a crash interrupted. */
export function addMessages(server: FastifyInstance, parts: Parts): Messages {
  const { once, ledger, base, config, quotas, watch } = parts
  const channels = createChannels(config)
  const { log } = server
  const { sendTimeoutMs } = config
  const slots = createSlots({
    base,
    rates: ratesOf(config),
    callMs: sendTimeoutMs * LATE_SHARE,
    failed: (channel, err) => log.warn({ event: 'message.slot_kept', channel, err }, 'slot is given back later'),
  })
  const delivery = createDelivery({ ledger, base, channels, slots, sendTimeoutMs, windowMs: WINDOW_MS, log })
  const sender = createSender({ once, base, channels, delivery, config, quotas, log, watch })
  addSend(server, { protect: protectRoutes(log, once), base, sender })
  addBatchSend(server, { once, base, sender })
  addReads(server, { base })
  addResolve(server, { base, delivery })
  addLocks(server, { once, base, guard: sender.guard })
  const worker = startWorker({ base, delivery, log })
  return {
    sender,
    channels,
    delivery,
    sweeps: [
      messageSweep(base, config.retainMessagesDays),
      leadSweep(base, config.retainLeadsDays),
      originalSweep(base, WINDOW_MS),
    ],
    async stop() {
      await worker.stop()
      await delivery.stop()
    },
  }
}

/** By the names of their channels. The local mailbox is no provider. */
function ratesOf({ smtpRate, webhookRate, twilioRate }: ServerParts['config']): ReadonlyMap<string, CallRate> {
  const rates = { smtp: smtpRate, webhook: webhookRate, twilio: twilioRate } satisfies Partial<
    Record<ChannelName, unknown>
  >
  return new Map(Object.entries(rates).flatMap(([name, rate]) => (rate === null ? [] : [[name, rate] as const])))
}
